/* What stands behind the label that errors jump to is no companion of what follows the last jump: only
   one of both is executed. What comes before a jump is. */
struct log {
	int state;
	int sent;
	int length;
};

int fill(int n);

void one(struct log *l, int n) { l->state = n; l->sent = n; }
void two(struct log *l, int n) { l->state = n + 1; l->sent = n + 1; }
void three(struct log *l, int n) { l->state = n + 2; l->sent = n + 2; }
void four(struct log *l, int n) { l->state = n + 3; l->sent = n + 3; }
void five(struct log *l, int n) { l->state = n + 4; l->sent = n + 4; }

int after_the_last_jump(struct log *l, int n)
{
	if (fill(n) < 0)
		goto failed;
	l->sent = n;
	return 0;
failed:
	l->state = n;
	return -1;
}

int before_a_jump(struct log *l, int n)
{
	l->sent = n;
	if (fill(n) < 0)
		goto failed;
	return 0;
failed:
	l->state = n;
	return -1;
}

int falls_into_the_label(struct log *l, int n)
{
	if (fill(n) < 0)
		goto done;
	l->sent = n;
done:
	l->state = n;
	return 0;
}

int through_two_labels(struct log *l, int n)
{
	if (fill(n) < 0)
		goto both;
	if (fill(n + 1) < 0)
		goto state;
	l->sent = n;
	return 0;
both:
	fill(0);
state:
	l->state = n;
	return -1;
}

void sixth(struct log *l, int n) { l->state = n * 2; fill(n); } /* BUG: log::sent */
