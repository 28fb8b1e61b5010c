/* Speed and duplex share a register: whoever sets one must look at the other. */
struct phy { int speed, duplex, link; };
int phy_write(struct phy *phy, int value);

int setup_forced(struct phy *phy, int ctl)
{
	phy->speed = 1000;
	phy->duplex = 1;
	return phy_write(phy, ctl);
}
void resolve(struct phy *p, int lpa) { p->duplex = lpa & 1; p->speed = lpa & 2 ? 100 : 10; }
void fixed_link(struct phy *p) { p->speed = 100; p->duplex = 0; p->link = 1; }
void downgrade(struct phy *p) { if (p->speed == 1000) p->duplex = 0; p->speed = 10; }
void from_config(struct phy *p, const int *config) { p->duplex = config[0]; p->speed = config[1]; }
void copy(struct phy *to, const struct phy *from) { to->speed = from->speed; to->duplex = from->duplex; }
int ioctl_write(struct phy *p, int value)
{
	p->duplex = value & 0x100 ? 1 : 0; /* BUG: phy::speed */
	return phy_write(p, value);
}
