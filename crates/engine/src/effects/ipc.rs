//! System V and POSIX queues, semaphores and shared segments; asynchronous input and output.

use super::Known;
use super::call::Call;
use super::row::Part::{Answer, Fixed};
use super::row::{Row, sorted};
use base::system_call::number as n;
use std::mem::size_of;

const ASYNCHRONOUS: Row = Row::Unknown("asynchronous input is written at any time");

pub const ROWS: &[(u64, Row)] = &[
    (n::shmctl, Row::choice(1, SHARED)),
    (n::msgctl, Row::choice(1, QUEUE)),
    (n::semctl, Row::choice(2, SEMAPHORES)),
    (n::msgrcv, Row::after(message)),
    (n::mq_timedreceive, Row::Writes(&[Answer(1, 2), Fixed(3, 4)])),
    (n::mq_getsetattr, Row::Writes(&[Fixed(2, size_of::<libc::mq_attr>() as u64)])),
    (n::io_setup, ASYNCHRONOUS),
    (n::io_submit, ASYNCHRONOUS),
    (n::io_getevents, ASYNCHRONOUS),
    (n::io_pgetevents, ASYNCHRONOUS),
    (n::io_cancel, ASYNCHRONOUS),
    (n::io_uring_setup, ASYNCHRONOUS),
    (n::io_uring_enter, ASYNCHRONOUS),
    (n::io_uring_register, ASYNCHRONOUS),
];

pub const NOTHING: &[u64] = &[
    n::shmget,
    n::shmat,
    n::shmdt,
    n::msgget,
    n::msgsnd,
    n::semget,
    n::semop,
    n::semtimedop,
    n::mq_open,
    n::mq_unlink,
    n::mq_timedsend,
    n::mq_notify,
    n::io_destroy,
];

const SEGMENT: Row = Row::Writes(&[Fixed(2, size_of::<libc::shmid_ds>() as u64)]);

const SHARED: &[(u64, Row)] = &sorted([
    (libc::IPC_STAT as u64, SEGMENT),
    (13, SEGMENT),                                         // SHM_STAT
    (15, SEGMENT),                                         // SHM_STAT_ANY
    (libc::IPC_INFO as u64, Row::Writes(&[Fixed(2, 72)])), // as struct shminfo64
    (14, Row::Writes(&[Fixed(2, 48)])),                    // SHM_INFO
    (libc::IPC_SET as u64, Row::Nothing),
    (libc::IPC_RMID as u64, Row::Nothing),
    (libc::SHM_LOCK as u64, Row::Nothing),
    (libc::SHM_UNLOCK as u64, Row::Nothing),
]);

const QUEUE_STATE: Row = Row::Writes(&[Fixed(2, size_of::<libc::msqid_ds>() as u64)]);
const QUEUE_LIMITS: Row = Row::Writes(&[Fixed(2, size_of::<libc::msginfo>() as u64)]);

const QUEUE: &[(u64, Row)] = &sorted([
    (libc::IPC_STAT as u64, QUEUE_STATE),
    (libc::MSG_STAT as u64, QUEUE_STATE),
    (13, QUEUE_STATE), // MSG_STAT_ANY
    (libc::IPC_INFO as u64, QUEUE_LIMITS),
    (libc::MSG_INFO as u64, QUEUE_LIMITS),
    (libc::IPC_SET as u64, Row::Nothing),
    (libc::IPC_RMID as u64, Row::Nothing),
]);

const SET: Row = Row::Writes(&[Fixed(3, size_of::<libc::semid_ds>() as u64)]);
const SET_LIMITS: Row = Row::Writes(&[Fixed(3, size_of::<libc::seminfo>() as u64)]);

const SEMAPHORES: &[(u64, Row)] = &sorted([
    (libc::IPC_STAT as u64, SET),
    (libc::SEM_STAT as u64, SET),
    (20, SET), // SEM_STAT_ANY
    (libc::IPC_INFO as u64, SET_LIMITS),
    (libc::SEM_INFO as u64, SET_LIMITS),
    (libc::GETALL as u64, Row::after(all_values)),
    (libc::IPC_SET as u64, Row::Nothing),
    (libc::IPC_RMID as u64, Row::Nothing),
    (libc::GETPID as u64, Row::Nothing),
    (libc::GETVAL as u64, Row::Nothing),
    (libc::GETNCNT as u64, Row::Nothing),
    (libc::GETZCNT as u64, Row::Nothing),
    (libc::SETVAL as u64, Row::Nothing),
    (libc::SETALL as u64, Row::Nothing),
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
