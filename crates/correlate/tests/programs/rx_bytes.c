/* Network counters: packets and bytes count the same event. One receive path forgets packets. */
struct net_stats { unsigned long rx_packets, rx_bytes, tx_errors; };
struct card { struct net_stats stats; int speed; };
struct frame { int len; };

void ring_rx(struct card *c, struct frame *f) { c->stats.rx_packets++; c->stats.rx_bytes += f->len; }
void poll_rx(struct card *c, int len) { c->stats.rx_bytes += len; c->stats.rx_packets += 1; }
void fifo_rx(struct net_stats *s, struct frame *f)
{
	s->rx_packets++;
	if (f->len)
		s->rx_bytes += f->len;
}
void slow_rx(struct net_stats *stats, int n) { stats->rx_packets = stats->rx_packets + 1; stats->rx_bytes += n; }
void dma_rx(struct card *card, struct frame *frames, int n)
{
	for (int i = 0; i < n; i++) {
		card->stats.rx_packets++;
		card->stats.rx_bytes += frames[i].len;
	}
}
void reset_rx(struct net_stats *s) { s->rx_packets = 0; s->rx_bytes = 0; }
void jumbo_rx(struct card *c, struct frame *f)
{
	struct net_stats *s = &c->stats;
	s->rx_bytes += f->len; /* BUG: net_stats::rx_packets */
}
void note_error(struct card *c) { c->stats.tx_errors++; }
