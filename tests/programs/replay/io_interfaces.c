// build: -O1
// Asks every network interface for what it is and whether it is linked, also by way of requests
// inside of requests, as browsers do.
#include "check.h"
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>

static void ask(int socket, const char *name, const char *what, void *request, size_t size)
{
    struct ifreq interface = {0};
    unsigned sum = 0;
    strncpy(interface.ifr_name, name, IFNAMSIZ - 1);
    interface.ifr_data = request;
    int answer = ioctl(socket, SIOCETHTOOL, &interface);
    for (size_t i = 0; i < size; i++) sum = sum * 31 + ((unsigned char *)request)[i];
    printf("%s %s: %d %08x\n", name, what, answer, sum);
}

int main(void)
{
    unsigned noise;
    MUST(getrandom(&noise, sizeof noise, 0));
    printf("%u\n", noise);
    int inet = socket(AF_INET, SOCK_DGRAM, 0);
    MUST(inet);
    struct if_nameindex *all = if_nameindex();
    CHECK(all);
    for (struct if_nameindex *one = all; one->if_index; one++) {
        struct ethtool_cmd settings = {.cmd = ETHTOOL_GSET};
        struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
        struct ethtool_value link = {.cmd = ETHTOOL_GLINK};
        struct { struct ethtool_link_settings head; unsigned masks[3 * 127]; } wide = {.head.cmd = ETHTOOL_GLINKSETTINGS};
        ask(inet, one->if_name, "settings", &settings, sizeof settings);
        ask(inet, one->if_name, "driver", &driver, sizeof driver);
        ask(inet, one->if_name, "link", &link, sizeof link);
        ask(inet, one->if_name, "wide", &wide, sizeof wide);
        wide.head.link_mode_masks_nwords = (signed char)-wide.head.link_mode_masks_nwords;
        ask(inet, one->if_name, "wide again", &wide, sizeof wide);
    }
    if_freenameindex(all);
    puts("ok");
}
