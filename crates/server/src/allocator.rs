//! The allocator: mimalloc with its fast functions; pages of the system for huge blocks.
//!
//! The crate `mimalloc` hands every request on with its alignment, and mimalloc then looks for a block that may have to
//! be cut to fit: a third of the blocks of a request took that way, at five times the instructions. Blocks are aligned
//! well enough for nearly everything as they come.
//!
//! A tree or a result of a large message grows by half again and again. Copying hundreds of megabytes would hold up the core
//! for as many milliseconds and need both copies at once; pages only move to other addresses. Where the system has no more
//! pages, mimalloc may still have room: it reserves address space in advance, under `ulimit -v` nearly all of it.
#![expect(unsafe_code, reason = "an allocator is unsafe by its trait")]

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::ptr::{copy_nonoverlapping, null_mut};

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};
use penstock_budget::memory;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap_anonymous, mremap, munmap};

pub(crate) struct Allocator;

/// Alignment of every block (mimalloc aligns 8 bytes to 8 bytes).
const ALIGNED_ANYHOW: usize = 8;

/// Blocks from here on are pages of the system. Getting those takes some microseconds, which is little beside filling them.
const HUGE_BYTES: usize = 4 << 20;

/// The least size of a page anywhere.
const PAGE_BYTES: usize = 4096;

unsafe extern "C" {
    /// Whether mimalloc allocated a block. `libmimalloc_sys` declares it only together with another crate.
    safe fn mi_is_in_heap_region(block: *const c_void) -> bool;
}

/// Whether a block should be pages of the system.
#[inline]
fn is_huge(layout: Layout) -> bool {
    layout.size() >= HUGE_BYTES && layout.align() <= PAGE_BYTES
}

/// Whether a block is pages of the system.
#[inline]
fn is_mapped(block: *const u8, layout: Layout) -> bool {
    is_huge(layout) && !mi_is_in_heap_region(block.cast())
}

/// Zeroed pages of the system, or a zeroed block of mimalloc where there are none.
#[cold]
fn map(layout: Layout) -> *mut u8 {
    // SAFETY: a private mapping at an address of the system's choice touches no other memory.
    let pages =
        unsafe { mmap_anonymous(null_mut(), layout.size(), ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
    // SAFETY: as in `Allocator::alloc`.
    pages.unwrap_or_else(|_| unsafe { mi_zalloc_aligned(layout.size(), layout.align()) }).cast()
}

// SAFETY: `mi_malloc`, `mi_zalloc` and `mi_realloc` give blocks of at least the requested size, aligned to 8 bytes or
// more, or null; the variants with an alignment do the same for the alignment given, which `Layout` makes a power of
// two. A block of any of them may be given to `mi_free` and to both ways to resize. Mappings are aligned to a page and
// zeroed; when a block is given back, its layout and mimalloc determine which of both it is.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        memory::allocated(layout.size());
        if is_huge(layout) {
            return map(layout);
        }
        // SAFETY: see above.
        unsafe {
            if layout.align() <= ALIGNED_ANYHOW {
                mi_malloc(layout.size()).cast()
            } else {
                mi_malloc_aligned(layout.size(), layout.align()).cast()
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        memory::allocated(layout.size());
        if is_huge(layout) {
            return map(layout);
        }
        // SAFETY: as in `alloc`.
        unsafe {
            if layout.align() <= ALIGNED_ANYHOW {
                mi_zalloc(layout.size()).cast()
            } else {
                mi_zalloc_aligned(layout.size(), layout.align()).cast()
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        memory::freed(layout.size());
        if is_mapped(block, layout) {
            // SAFETY: the block is a mapping of this size. Unmapping it can only fail when the kernel lacks memory, and then
            // the pages stay.
            let _ = unsafe { munmap(block.cast(), layout.size()) };
            return;
        }
        // SAFETY: the caller gives back a block of this allocator.
        unsafe { mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.size().max(size) >= HUGE_BYTES {
            // SAFETY: as the caller promises for this call.
            return unsafe { resize_huge(self, block, layout, size) };
        }
        memory::freed(layout.size());
        memory::allocated(size);
        // SAFETY: the caller gives a block of this allocator and its layout.
        unsafe {
            if layout.align() <= ALIGNED_ANYHOW {
                mi_realloc(block.cast(), size).cast()
            } else {
                mi_realloc_aligned(block.cast(), size, layout.align()).cast()
            }
        }
    }
}

/// Resizes a block that is huge, becomes huge, or both.
///
/// # Safety
///
/// As for [`GlobalAlloc::realloc`].
#[cold]
unsafe fn resize_huge(allocator: &Allocator, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    // SAFETY: the caller promises that `size`, rounded up to the alignment, does not overflow.
    let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
    if is_huge(new) && is_mapped(block, layout) {
        // SAFETY: the block is a mapping of this size, which nothing else refers to.
        let moved = unsafe { mremap(block.cast(), layout.size(), size, MremapFlags::MAYMOVE) };
        if let Ok(pages) = moved {
            memory::freed(layout.size());
            memory::allocated(size);
            return pages.cast();
        }
    }
    // SAFETY: the new block is another one and at least as long as what is copied; then the old one is given back.
    unsafe {
        let moved = allocator.alloc(new);
        if !moved.is_null() {
            copy_nonoverlapping(block, moved, layout.size().min(size));
            allocator.dealloc(block, layout);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_their_content_across_the_border_to_huge() {
        let mut list: Vec<u64> = Vec::new();
        for number in 0..3_000_000 {
            list.push(number);
        }
        list.truncate(1_000);
        list.shrink_to_fit();
        assert!(list.iter().copied().eq(0..1_000));
        let zeroed = vec![0_u8; HUGE_BYTES * 2];
        assert!(zeroed.iter().all(|byte| *byte == 0));
    }
}
