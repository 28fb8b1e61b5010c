/* Four colour fields belong together. One driver sets three of them. */
struct channel { int offset, msb; };
struct screen { int red_msb, green_msb, blue_msb, transp_msb; int width; };

int alpha_check(struct screen *var)
{
	var->red_msb = 0;
	var->green_msb = 0;
	var->blue_msb = 0;
	var->transp_msb = 0;
	return var->width ;
}
int beta_check(struct screen *var)
{
	var->red_msb = 1;
	var->green_msb = 1;
	var->blue_msb = 1;
	var->transp_msb = 0;
	return var->width + 1;
}
int gamma_check(struct screen *var)
{
	var->red_msb = 0;
	var->green_msb = 0;
	var->blue_msb = 0;
	var->transp_msb = 0;
	return var->width * 2;
}
int delta_check(struct screen *var)
{
	var->red_msb = 2;
	var->green_msb = 2;
	var->blue_msb = 2;
	var->transp_msb = 0;
	return var->width - 1;
}
int epsilon_check(struct screen *var)
{
	var->red_msb = 0;
	var->green_msb = 0;
	var->blue_msb = 0;
	var->transp_msb = 0;
	return var->width / 2;
}
int zeta_check(struct screen *var)
{
	var->red_msb = 3;
	var->green_msb = 3;
	var->blue_msb = 3;
	var->transp_msb = 0;
	return var->width % 3;
}
int neon_check(struct screen *var)
{
	var->red_msb = 0; /* BUG: screen::transp_msb */
	var->green_msb = 0;
	var->blue_msb = 0;
	return var->width;
}
