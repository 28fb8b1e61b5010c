// build: -O1 -Wall -Wno-unused-result
// System V and POSIX queues, semaphores and shared segments.
#include "call.h"
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

static void segments(void) {
    int id = shmget(IPC_PRIVATE, 8192, 0600);
    call(SYS_shmctl, id, IPC_STAT, room(112));
    call(SYS_shmctl, 0, IPC_INFO, room(72));
    call(SYS_shmctl, 0, 14 /* SHM_INFO */, room(48));
    int index = id & 0x7fff;
    call(SYS_shmctl, index, 13 /* SHM_STAT */, room(112));
    call(SYS_shmctl, index, 15 /* SHM_STAT_ANY */, room(112));
    call(SYS_shmctl, id, IPC_STAT, edge(30));
    call(SYS_shmctl, -1, IPC_STAT, room(112));
    call(SYS_shmctl, id, IPC_RMID, NULL);
}

static void semaphores(void) {
    int id = semget(IPC_PRIVATE, 5, 0600);
    call(SYS_semctl, id, 0, IPC_STAT, room(104));
    call(SYS_semctl, 0, 0, IPC_INFO, room(40));
    call(SYS_semctl, 0, 0, SEM_INFO, room(40));
    int index = id & 0x7fff;
    call(SYS_semctl, index, 0, SEM_STAT, room(104));
    call(SYS_semctl, index, 0, 20 /* SEM_STAT_ANY */, room(104));
    call(SYS_semctl, id, 0, GETALL, room(10));
    call(SYS_semctl, id, 0, GETALL, edge(4));
    call(SYS_semctl, id, 0, IPC_RMID, NULL);
}

static void queues(void) {
    int id = msgget(IPC_PRIVATE, 0600);
    struct { long type; char text[20]; } sent = {7, "a message"};
    msgsnd(id, &sent, 20, 0);
    msgsnd(id, &sent, 20, 0);
    msgsnd(id, &sent, 20, 0);
    call(SYS_msgctl, id, IPC_STAT, room(120));
    call(SYS_msgctl, 0, IPC_INFO, room(32));
    call(SYS_msgctl, 0, MSG_INFO, room(32));
    int index = id & 0x7fff;
    call(SYS_msgctl, index, MSG_STAT, room(120));
    call(SYS_msgctl, index, 13 /* MSG_STAT_ANY */, room(120));
    call(SYS_msgrcv, id, room(60), 40, 0, 0);
    call(SYS_msgrcv, id, room(60), 4, 0, MSG_NOERROR);
    call(SYS_msgrcv, id, room(60), 4, 0, 0);
    call(SYS_msgrcv, id, edge(12), 40, 0, 0);
    call(SYS_msgrcv, id, room(60), 40, 0, IPC_NOWAIT);
    call(SYS_msgctl, id, IPC_RMID, NULL);

    struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 64};
    int queue = call(SYS_mq_open, "whydunit-queue", O_RDWR | O_CREAT | O_NONBLOCK, 0600, &attributes);
    call(SYS_mq_getsetattr, queue, NULL, room(64));
    call(SYS_mq_timedsend, queue, "hello", 5, 3, NULL);
    call(SYS_mq_timedreceive, queue, room(64), 64, room(4), NULL);
    call(SYS_mq_timedreceive, queue, room(64), 64, room(4), NULL);
    call(SYS_mq_unlink, "whydunit-queue");
}

int main(void) {
    segments();
    semaphores();
    queues();
    return 0;
}
