//! Handles to the objects of a session: setups, shared values, registers, batches, masks, elements and
//! released values.

use std::any::{Any, type_name};
use std::sync::Arc;

use polyclave_cipher::Cells;

use crate::interface::protocol::SharedValue;
use crate::interface::release::Released;

/// What a party keeps from session to session.
#[derive(Clone)]
pub struct AnySetup(Arc<dyn Any + Send + Sync>);

impl AnySetup {
    pub(super) fn new<T: Send + Sync + 'static>(setup: T) -> AnySetup {
        AnySetup(Arc::new(setup))
    }

    pub(super) fn of<T: 'static>(&self) -> &T {
        self.0.downcast_ref().unwrap_or_else(|| of_another_protocol::<T>())
    }
}

/// This party's part of a shared value; wiped on drop of its last handle.
#[derive(Clone)]
pub struct AnyShared(Arc<dyn ErasedShared>);

trait ErasedShared: Any + Send + Sync {
    fn own_shares(&self) -> &[u8];
}

impl<T: SharedValue + 'static> ErasedShared for T {
    fn own_shares(&self) -> &[u8] {
        self.reveal_own_shares()
    }
}

impl AnyShared {
    pub(super) fn new<T: SharedValue + 'static>(shared: T) -> AnyShared {
        AnyShared(Arc::new(shared))
    }

    pub(super) fn of<T: 'static>(&self) -> &T {
        let shared: &dyn Any = &*self.0;
        shared.downcast_ref().unwrap_or_else(|| of_another_protocol::<T>())
    }
}

impl SharedValue for AnyShared {
    fn reveal_own_shares(&self) -> &[u8] {
        self.0.own_shares()
    }
}

/// Shares of an evaluation under way; wiped on drop.
pub struct AnyRegisters(Box<dyn Any>);

impl AnyRegisters {
    pub(super) fn new<T: 'static>(registers: T) -> AnyRegisters {
        AnyRegisters(Box::new(registers))
    }

    pub(super) fn of<T: 'static>(&mut self) -> &mut T {
        self.0.downcast_mut().unwrap_or_else(|| of_another_protocol::<T>())
    }
}

/// Material for one evaluation.
pub struct AnyBatch(Box<dyn Any + Send>);

impl AnyBatch {
    pub(super) fn new<T: Send + 'static>(batch: T) -> AnyBatch {
        AnyBatch(Box::new(batch))
    }

    pub(super) fn of<T: 'static>(&mut self) -> &mut T {
        self.0.downcast_mut().unwrap_or_else(|| of_another_protocol::<T>())
    }
}

/// A random value, shared, that covers an input of a client.
pub struct AnyMask(Box<dyn Any + Send>);

impl AnyMask {
    pub(super) fn new<T: Send + 'static>(mask: T) -> AnyMask {
        AnyMask(Box::new(mask))
    }

    pub(super) fn of<T: 'static>(&self) -> &T {
        self.0.downcast_ref().unwrap_or_else(|| of_another_protocol::<T>())
    }
}

/// A revealed value, and whether it was checked before.
pub struct AnyReleased {
    cells: Cells,
    is_verified: bool,
}

impl AnyReleased {
    pub(super) fn new<R: Released>(released: R) -> AnyReleased {
        AnyReleased { is_verified: released.is_verified(), cells: released.accept() }
    }
}

impl Released for AnyReleased {
    fn is_verified(&self) -> bool {
        self.is_verified
    }

    fn accept(self) -> Cells {
        self.cells
    }
}

fn of_another_protocol<T>() -> ! {
    panic!("a value of another protocol was given where {} was expected", type_name::<T>())
}
