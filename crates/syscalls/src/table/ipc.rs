//! System V and POSIX queues, semaphores and shared segments; asynchronous input and output.

use crate::Known;
use crate::call::Call;
use crate::reads::{Content, Reading};
use crate::row::Part::{Answer, Fixed};
use crate::row::{Row, Take, sorted};
use std::mem::size_of;

const ASYNCHRONOUS: Row = Row::unknown("asynchronous input is written at any time");

system_calls! {
    31 shmctl(Number, Number, Address), writes Row::choice(1, SHARED);
    71 msgctl(Number, Number, Address), writes Row::choice(1, QUEUE);
    66 semctl(Number, Number, Number, Address), writes Row::choice(2, SEMAPHORES);
    70 msgrcv(Number, Output, Size, Number, Flags), writes Row::after(message);
    243 mq_timedreceive(Fd, Out(2), Size, Output, Input(16)),
        writes Row::writes(&[Answer(1, 2), Fixed(3, 4)]);
    245 mq_getsetattr(Fd, Input(ATTRIBUTES), Output),
        writes Row::writes(&[Fixed(2, ATTRIBUTES)]);
    206 io_setup(Size, Update(8)), writes ASYNCHRONOUS;
    209 io_submit(Address, Number, InputItems(8, 1)), writes ASYNCHRONOUS;
    208 io_getevents(Address, Number, Number, Output, Input(16)), writes ASYNCHRONOUS;
    333 io_pgetevents(Address, Number, Number, Output, Input(16), Input(16)), writes ASYNCHRONOUS;
    210 io_cancel(Address, Input(64), Output), writes ASYNCHRONOUS;
    425 io_uring_setup(Size, Update(120)), writes ASYNCHRONOUS;
    426 io_uring_enter(Fd, Size, Size, Flags, In(5), Size), writes ASYNCHRONOUS;
    427 io_uring_register(Fd, Number, Address, Size), writes ASYNCHRONOUS;

    // Calls that write nothing into the memory of the caller.
    29 shmget(Number, Size, Flags);
    30 shmat(Number, Address, Flags);
    67 shmdt(Address);
    68 msgget(Number, Flags);
    69 msgsnd(Number, Input(VARIES), Size, Flags), reads message_reads;
    64 semget(Number, Number, Flags);
    65 semop(Number, InputItems(6, 2), Size);
    220 semtimedop(Number, InputItems(6, 2), Size, Input(TIME));
    240 mq_open(Text, Flags, Mode, Input(ATTRIBUTES));
    241 mq_unlink(Text);
    242 mq_timedsend(Fd, In(2), Size, Size, Input(16));
    244 mq_notify(Fd, Input(64));
    207 io_destroy(Address);
}

const TIME: u64 = size_of::<libc::timespec>() as u64;
/// `struct mq_attr`.
const ATTRIBUTES: u64 = size_of::<libc::mq_attr>() as u64;

const SEGMENT: Row = Row::writes(&[Fixed(2, size_of::<libc::shmid_ds>() as u64)]);

const SHARED: &[(u64, Row)] = &sorted([
    (libc::IPC_STAT as u64, SEGMENT),
    (13, SEGMENT),                                         // SHM_STAT
    (15, SEGMENT),                                         // SHM_STAT_ANY
    (libc::IPC_INFO as u64, Row::writes(&[Fixed(2, 72)])), // as struct shminfo64
    (14, Row::writes(&[Fixed(2, 48)])),                    // SHM_INFO
    (libc::IPC_SET as u64, Row::takes(&[Take::Bytes(2, size_of::<libc::shmid_ds>() as u64)])),
    (libc::IPC_RMID as u64, Row::NOTHING),
    (libc::SHM_LOCK as u64, Row::NOTHING),
    (libc::SHM_UNLOCK as u64, Row::NOTHING),
]);

const QUEUE_STATE: Row = Row::writes(&[Fixed(2, size_of::<libc::msqid_ds>() as u64)]);
const QUEUE_LIMITS: Row = Row::writes(&[Fixed(2, size_of::<libc::msginfo>() as u64)]);

const QUEUE: &[(u64, Row)] = &sorted([
    (libc::IPC_STAT as u64, QUEUE_STATE),
    (libc::MSG_STAT as u64, QUEUE_STATE),
    (13, QUEUE_STATE), // MSG_STAT_ANY
    (libc::IPC_INFO as u64, QUEUE_LIMITS),
    (libc::MSG_INFO as u64, QUEUE_LIMITS),
    (libc::IPC_SET as u64, Row::takes(&[Take::Bytes(2, size_of::<libc::msqid_ds>() as u64)])),
    (libc::IPC_RMID as u64, Row::NOTHING),
]);

const SET: Row = Row::writes(&[Fixed(3, size_of::<libc::semid_ds>() as u64)]);
const SET_LIMITS: Row = Row::writes(&[Fixed(3, size_of::<libc::seminfo>() as u64)]);

const SEMAPHORES: &[(u64, Row)] = &sorted([
    (libc::IPC_STAT as u64, SET),
    (libc::SEM_STAT as u64, SET),
    (20, SET), // SEM_STAT_ANY
    (libc::IPC_INFO as u64, SET_LIMITS),
    (libc::SEM_INFO as u64, SET_LIMITS),
    (libc::GETALL as u64, Row::after(all_values)),
    (libc::IPC_SET as u64, Row::takes(&[Take::Bytes(3, size_of::<libc::semid_ds>() as u64)])),
    (libc::IPC_RMID as u64, Row::NOTHING),
    (libc::GETPID as u64, Row::NOTHING),
    (libc::GETVAL as u64, Row::NOTHING),
    (libc::GETNCNT as u64, Row::NOTHING),
    (libc::GETZCNT as u64, Row::NOTHING),
    (libc::SETVAL as u64, Row::NOTHING),
    (libc::SETALL as u64, Row::takes(&[Take::Rule(all_values_read)])),
]);

/// The type of the message, and its text.
fn message(call: &mut Call<'_>) -> Known {
    if call.wrote() {
        let [_, message, room, ..] = call.arguments;
        call.put(message, 8 + call.amount().min(room));
    }
    Known::Yes
}

/// Two bytes a semaphore; how many the set has is not to be seen here, but what the limit is.
fn all_values(call: &mut Call<'_>) -> Known {
    const LARGEST_SET: u64 = 32_000;
    if call.wrote() {
        call.put_mapped(call.arguments[3], 2 * LARGEST_SET);
    }
    Known::Yes
}

/// The type of the message, and its text.
fn message_reads(reading: &mut Reading<'_>) {
    let [_, message, length, ..] = reading.arguments;
    reading.parameters(message, 8);
    reading.put(Content::Bytes, message.wrapping_add(8), length);
}

/// Two bytes a semaphore; how many the set has is not to be seen here.
fn all_values_read(reading: &mut Reading<'_>) {
    reading.parameters(reading.arguments[3], 2);
}
