//! Reading and writing the guest's memory without trusting its addresses: the kernel checks them.

use super::signal::frame::GuestMemory;
use crate::layout;
use crate::sys::{self, syscall};

/// The guest's memory, through the kernel.
pub struct Checked;

impl GuestMemory for Checked {
    fn write(&self, address: u64, bytes: &[u8]) -> bool {
        transfer(libc::SYS_process_vm_writev, address, bytes.as_ptr() as u64, bytes.len())
            == bytes.len() as i64
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let length = bytes.len();
        transfer(libc::SYS_process_vm_readv, address, bytes.as_mut_ptr() as u64, length)
            == length as i64
    }
}

fn transfer(call: i64, address: u64, local: u64, length: usize) -> i64 {
    let end = address.saturating_add(length as u64);
    if length > 0 && layout::belongs_to_engine(&(address..end)) {
        return -i64::from(libc::EFAULT);
    }
    let own = [local, length as u64];
    let theirs = [address, length as u64];
    // By the thread's number: the process's own is no good once its first thread has ended.
    // SAFETY: the local side is a live slice; the remote side is checked by the kernel.
    unsafe { syscall!(call, sys::gettid(), own.as_ptr(), 1, theirs.as_ptr(), 1, 0) }
}

/// Reads as many bytes as there are.
pub fn read_some(address: u64, bytes: &mut [u8]) -> usize {
    let mut done = 0;
    while done < bytes.len() {
        let at = address + done as u64;
        let step = ((4096 - at % 4096) as usize).min(bytes.len() - done);
        if !Checked.read(at, &mut bytes[done..done + step]) {
            break;
        }
        done += step;
    }
    done
}

/// Reads a value of plain bytes.
pub fn read_u64(address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    Checked.read(address, &mut bytes).then(|| u64::from_le_bytes(bytes))
}

/// Reads a 32-bit value.
pub fn read_u32(address: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    Checked.read(address, &mut bytes).then(|| u32::from_le_bytes(bytes))
}

/// The longest string that `execve` takes.
const LONGEST: usize = 128 << 10;

/// Reads a C string; an error number if it cannot be read or is too long.
pub fn read_string(address: u64) -> Result<Vec<u8>, i32> {
    let mut text = Vec::new();
    let mut at = address;
    while text.len() <= LONGEST {
        let step = (4096 - at % 4096) as usize;
        let mut bytes = vec![0; step];
        if !Checked.read(at, &mut bytes) {
            return Err(libc::EFAULT);
        }
        if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
            text.extend_from_slice(&bytes[..end]);
            return if text.len() < LONGEST { Ok(text) } else { Err(libc::E2BIG) };
        }
        text.extend_from_slice(&bytes);
        at += step as u64;
    }
    Err(libc::E2BIG)
}

/// Reads an array of strings that a null pointer ends.
pub fn read_strings(mut address: u64) -> Result<Vec<Vec<u8>>, i32> {
    let mut all = Vec::new();
    if address == 0 {
        return Ok(all);
    }
    loop {
        match read_u64(address).ok_or(libc::EFAULT)? {
            0 => return Ok(all),
            text => all.push(read_string(text)?),
        }
        address += 8;
    }
}
