//! The allocator: mimalloc, asked the way that is quick.
//!
//! The crate `mimalloc` hands every request on with its alignment, and mimalloc then looks for a block that may have to
//! be cut to fit: a third of the blocks of a request took that way, at five times the instructions. Blocks are aligned
//! well enough for nearly everything as they come.
#![expect(unsafe_code, reason = "an allocator is unsafe by its trait")]

use std::alloc::{GlobalAlloc, Layout};

use penstock_budget::memory;

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};

pub(crate) struct Allocator;

/// To what every block is aligned, whatever its size (mimalloc serves 8 bytes as 8 bytes).
const ALIGNED_ANYHOW: usize = 8;

// SAFETY: `mi_malloc`, `mi_zalloc` and `mi_realloc` give blocks of at least the size asked for, aligned to 8 bytes or
// more, or null; the variants with an alignment do the same for the alignment given, which `Layout` makes a power of
// two. A block of any of them may be given to `mi_free` and to both ways to resize.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        memory::allocated(layout.size());
        // SAFETY: see above; neither call asks for more.
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
        // SAFETY: the caller gives back a block of this allocator.
        unsafe { mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        memory::freed(layout.size());
        memory::allocated(size);
        // SAFETY: the caller gives a block of this allocator and the layout it was asked with.
        unsafe {
            if layout.align() <= ALIGNED_ANYHOW {
                mi_realloc(block.cast(), size).cast()
            } else {
                mi_realloc_aligned(block.cast(), size, layout.align()).cast()
            }
        }
    }
}
