//! Large pieces of memory that go back to the system.

/// Bytes that are shrunk before they are freed.
///
/// The allocator of glibc maps large pieces one by one and so can give each back; but whenever it frees one it
/// takes pieces of that size from its heap from then on, where they stay. A piece that was shrunk first does
/// not count as large then. Other allocators do not mind.
#[derive(Debug)]
pub(crate) struct GivenBack(pub(crate) Vec<u8>);

impl Drop for GivenBack {
    fn drop(&mut self) {
        self.0.truncate(1);
        self.0.shrink_to_fit();
    }
}
