//! Operations that each node answers alone. They are not planned.

use polyclave_api::operations::{List, Random, Report, Show, Status};

use crate::requests::plan::Operation;

impl Operation for Status {}
impl Operation for Report {}
impl Operation for List {}
impl Operation for Show {}
impl Operation for Random {}
