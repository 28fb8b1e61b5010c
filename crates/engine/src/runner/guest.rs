//! Reading and writing the guest's memory without trusting its addresses: the kernel checks them.

use super::signal::frame::GuestMemory;
use super::sys::{self, syscall};

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
    let own = [local, length as u64];
    let theirs = [address, length as u64];
    // SAFETY: the local side is a live slice; the remote side is checked by the kernel.
    unsafe { syscall!(call, sys::getpid(), own.as_ptr(), 1, theirs.as_ptr(), 1, 0) }
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

/// Reads a C string of at most a path's length.
pub fn read_string(address: u64) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut at = address;
    while text.len() < libc::PATH_MAX as usize * 32 {
        let step = (4096 - at % 4096) as usize;
        let mut bytes = vec![0; step];
        if !Checked.read(at, &mut bytes) {
            return None;
        }
        if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
            text.extend_from_slice(&bytes[..end]);
            return Some(text);
        }
        text.extend_from_slice(&bytes);
        at += step as u64;
    }
    None
}

/// Reads an array of strings that a null pointer ends.
pub fn read_strings(mut address: u64) -> Option<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    if address == 0 {
        return Some(all);
    }
    loop {
        match read_u64(address)? {
            0 => return Some(all),
            text => all.push(read_string(text)?),
        }
        address += 8;
    }
}
