//! placeholder until the merge
use std::path::Path;
/// e
pub struct Event<'a> {
    /// c
    pub client: &'a str,
    /// c
    pub operation: &'a str,
    /// c
    pub key: &'a str,
    /// c
    pub outcome: &'a str,
    /// c
    pub blocks: u64,
    /// c
    pub request: [u8; 32],
}
/// a
pub struct AuditLog;
impl AuditLog {
    /// o
    pub fn open(_: &Path) -> std::io::Result<AuditLog> {
        Ok(AuditLog)
    }
    /// o
    pub fn append(&mut self, _: &Event<'_>) -> std::io::Result<()> {
        Ok(())
    }
    /// o
    pub fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
    /// o
    pub fn sync(&mut self) -> std::io::Result<()> {
        Ok(())
    }
    /// o
    pub fn head(&self) -> Option<(u64, [u8; 32])> {
        None
    }
}
