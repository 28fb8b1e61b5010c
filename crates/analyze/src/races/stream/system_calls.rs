//! System calls that make, end or order threads, or take memory away.

use super::Feed;
use crate::races::detector::Object;
use syscalls::number as n;

impl Feed {
    pub(super) fn system_call(&mut self, number: u64, arguments: [u64; 6], answer: i64) {
        const WAKE: u64 = 1;
        const WAIT: u64 = 0;
        const BITSET: u64 = 9;
        if number != n::futex {
            self.goes_on();
        }
        match number {
            n::clone | n::clone3 if answer > 0 => {
                self.makes(answer as u32);
            }
            n::exit => {
                self.release(Object::End(self.now));
                let kernel_id = self.thread().kernel_id;
                self.by_kernel.remove(&kernel_id);
            }
            n::futex if !self.thread().is_hidden => match arguments[1] & 0x7f {
                WAIT | BITSET if answer == 0 => self.acquire(Object::Atomic(arguments[0])),
                WAKE => self.release(Object::Atomic(arguments[0])),
                _ => {}
            },
            n::read | n::readv | n::recvfrom | n::recvmsg if answer > 0 => {
                let channel = self.channel(arguments[0]);
                self.acquire(Object::Channel(channel));
                let writers = self.channels.has_read(channel, answer as u64, &self.facts.writes);
                for writer in writers.collect::<Vec<_>>() {
                    self.learns_from(writer);
                }
            }
            n::write | n::writev | n::sendto | n::sendmsg if answer > 0 => {
                let (channel, writer) = (self.channel(arguments[0]), self.thread().kernel_id);
                self.channels.wrote(channel, writer, answer as u64);
                self.release(Object::Channel(channel));
            }
            n::munmap if answer == 0 => self.forget(arguments[0], arguments[1].min(1 << 30)),
            _ => {}
        }
    }

    /// What goes through a file descriptor; the two ends of a pipe are one.
    fn channel(&self, descriptor: u64) -> u64 {
        let descriptor = descriptor as i32;
        let alone = u64::from(descriptor as u32);
        self.facts.channels.get(&descriptor).copied().unwrap_or(alone)
    }
}
