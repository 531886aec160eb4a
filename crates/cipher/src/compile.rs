//! Turns a circuit into layers of (linear maps, then lookups) that a protocol can run.
//!
//! A protocol's shares do some linear maps freely and others not ([`Maps::is_local`]). Every map that is not free is
//! folded backwards, through the sums before it, into a *view* of the lookup or input that the cell comes from: a
//! second output M(T(x)) beside T(x). Views are memoised on (wire, matrix). What nobody needs is dropped.
//!
//! Lookups run as early as their inputs allow, which gives the least number of layers; linear maps as late as their
//! first use allows, and slots are reused after the last use, which keeps the working set small.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::circuit::{Op, Port};
use crate::{Circuit, Matrix, Table, Wire};

/// What a protocol's shares can do freely, and what it wants of a table's input.
pub trait Maps {
    /// Whether shares of M(x) follow from shares of x without talking.
    fn is_local(&self, m: &Matrix) -> bool;

    /// A map as a local one after another. The inner one is asked as a view of the cell's source, so two maps that
    /// can share an inner one should.
    fn split(&self, m: &Matrix) -> (Matrix, Matrix) {
        match self.is_local(m) {
            true => (*m, Matrix::identity(m.ins())),
            false => (Matrix::identity(m.outs()), *m),
        }
    }

    /// The images of the input cell that a lookup of this table starts from; the first is the identity.
    fn wants(&self, table: &Table) -> Vec<Matrix> {
        vec![Matrix::identity(table.in_bits())]
    }
}

/// Every map is free: cleartext, and shares of single bits.
pub struct AnyMap;

impl Maps for AnyMap {
    fn is_local(&self, _: &Matrix) -> bool {
        true
    }
}

/// A place in a protocol's bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// A value per lane.
    Lanes(u32),
    /// One value for all lanes.
    Uniform(u32),
}

/// `dst = constant + sum of maps of sources`; every map is local to the protocol, no source is `dst`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linear {
    /// Where the sum goes.
    pub dst: Slot,
    /// Sources and maps. A uniform `dst` has uniform sources only.
    pub terms: Vec<(Slot, Matrix)>,
    /// Added to the sum.
    pub constant: u8,
}

/// One table on one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Position in [`Compiled::tables`].
    pub table: usize,
    /// Where the input is, one slot for each of [`Maps::wants`].
    pub xs: Vec<Slot>,
    /// The outputs wanted: M(T(x)) goes to the slot. Never a slot that a lookup of the same layer reads.
    pub views: Vec<(Matrix, Slot)>,
}

impl Lookup {
    /// Whether it runs once for all lanes.
    pub fn is_uniform(&self) -> bool {
        matches!(self.xs[0], Slot::Uniform(_))
    }
}

/// Linear maps in order, then lookups that are independent of each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// Run first, in this order.
    pub linear: Vec<Linear>,
    /// Run together. Only the last layer has none.
    pub lookups: Vec<Lookup>,
}

/// An input or output of a compiled circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledPort {
    /// As in the circuit.
    pub name: String,
    /// Width of each cell.
    pub bits: u8,
    /// One value for all lanes.
    pub uniform: bool,
    /// For each cell, the views of it and their slots. An input that nobody uses has none.
    pub cells: Vec<Vec<(Matrix, Slot)>>,
}

impl CompiledPort {
    /// Every view that some cell of this port has, in a fixed order, the identity always among them.
    pub fn views(&self) -> Vec<Matrix> {
        let mut views: Vec<Matrix> = self.cells.iter().flatten().map(|(m, _)| *m).collect();
        views.push(Matrix::identity(self.bits));
        views.sort_by_key(|m| (!m.is_identity(), *m));
        views.dedup();
        views
    }
}

/// A circuit in layers, for one way of sharing.
#[derive(Clone, Debug)]
pub struct Compiled {
    name: String,
    digest: [u8; 32],
    tables: Vec<Arc<Table>>,
    inputs: Vec<CompiledPort>,
    outputs: Vec<CompiledPort>,
    layers: Vec<Layer>,
    lane_slots: usize,
    uniform_slots: usize,
}

impl Compiled {
    /// The circuit's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The digest of the circuit this was made of.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The tables that lookups name.
    pub fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// What must be filled in before the first layer.
    pub fn inputs(&self) -> &[CompiledPort] {
        &self.inputs
    }

    /// What is ready after the last layer.
    pub fn outputs(&self) -> &[CompiledPort] {
        &self.outputs
    }

    /// The layers, in order; the last one has linear maps only.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Slots with a value per lane.
    pub fn lane_slots(&self) -> usize {
        self.lane_slots
    }

    /// Slots with one value for all lanes.
    pub fn uniform_slots(&self) -> usize {
        self.uniform_slots
    }

    /// All lookups, layer by layer.
    pub fn lookups(&self) -> impl Iterator<Item = &Lookup> {
        self.layers.iter().flat_map(|layer| &layer.lookups)
    }
}

/// Compiles for a protocol; outputs come as plain cells.
pub fn compile(circuit: &Circuit, maps: &(impl Maps + ?Sized)) -> Compiled {
    compile_with_views(circuit, maps, |_| Vec::new())
}

/// Compiles for a protocol. `views` names the images of an output port's cells that are wanted beside the cells
/// themselves, because a later circuit starts from them ([`CompiledPort::views`] of its input).
pub fn compile_with_views(
    circuit: &Circuit,
    maps: &(impl Maps + ?Sized),
    views: impl Fn(&Port) -> Vec<Matrix>,
) -> Compiled {
    let values = Values::demanded(circuit, maps, views);
    let schedule = Schedule::of(circuit, &values);
    Allocation::run(circuit, &values, &schedule)
}

/// A needed image of a wire.
type Value = (Wire, Matrix);

/// What has to be computed, and from what.
struct Values {
    /// Images needed of each wire, in order of first demand (from the outputs backwards).
    of: Vec<Vec<Matrix>>,
    /// The sums, by the value they make.
    sums: HashMap<Value, (Vec<(Value, Matrix)>, u8)>,
    /// What each lookup that is needed starts from.
    starts: HashMap<Wire, Vec<Value>>,
    /// Values of each output port.
    outputs: Vec<Vec<Vec<Value>>>,
    uniform: Vec<bool>,
}

impl Values {
    /// Walks from the outputs back; operations only use wires before them, so every demand on a wire is known when
    /// the walk reaches it.
    fn demanded(
        circuit: &Circuit,
        maps: &(impl Maps + ?Sized),
        views: impl Fn(&Port) -> Vec<Matrix>,
    ) -> Values {
        let ops = circuit.ops();
        let mut values = Values {
            of: vec![Vec::new(); ops.len()],
            sums: HashMap::new(),
            starts: HashMap::new(),
            outputs: Vec::new(),
            uniform: uniform_wires(circuit),
        };
        for port in circuit.outputs() {
            let mut wanted = vec![Matrix::identity(port.bits)];
            wanted.extend(views(port).into_iter().filter(|m| !m.is_identity()));
            let cells = port.cells.iter();
            let demands = cells.map(|w| wanted.iter().map(|m| values.demand(*w, *m)).collect()).collect();
            values.outputs.push(demands);
        }
        for (i, op) in ops.iter().enumerate().rev() {
            let wire = Wire(i as u32);
            match op {
                Op::Input { .. } => {}
                Op::Linear { terms, constant, .. } => {
                    for m in values.of[i].clone() {
                        let terms = terms.iter().map(|(w, inner)| (*w, m.after(inner)));
                        let terms = terms.filter(|(_, n)| !n.is_zero()).map(|(w, n)| {
                            let (outer, inner) = maps.split(&n);
                            (values.demand(w, inner), outer)
                        });
                        let sum = (terms.collect(), m.apply(*constant));
                        values.sums.insert((wire, m), sum);
                    }
                }
                Op::Lookup { table, x } if !values.of[i].is_empty() => {
                    let wants = maps.wants(&circuit.tables()[table.index()]);
                    let starts = wants.into_iter().map(|m| values.demand(*x, m)).collect();
                    values.starts.insert(wire, starts);
                }
                Op::Lookup { .. } => {}
            }
        }
        values
    }

    fn demand(&mut self, wire: Wire, m: Matrix) -> Value {
        let of = &mut self.of[wire.index()];
        if !of.contains(&m) {
            of.push(m);
        }
        (wire, m)
    }
}

fn uniform_wires(circuit: &Circuit) -> Vec<bool> {
    let mut uniform: Vec<bool> = Vec::with_capacity(circuit.ops().len());
    for op in circuit.ops() {
        uniform.push(match op {
            Op::Input { uniform, .. } => *uniform,
            Op::Linear { terms, .. } => terms.iter().all(|(w, _)| uniform[w.index()]),
            Op::Lookup { x, .. } => uniform[x.index()],
        });
    }
    uniform
}

/// What runs in which layer.
struct Schedule {
    /// Sums of each layer, in order of dependency.
    sums: Vec<Vec<Value>>,
    /// Lookups of each layer.
    lookups: Vec<Vec<Wire>>,
}

impl Schedule {
    fn of(circuit: &Circuit, values: &Values) -> Schedule {
        // A value of level k is ready when the lookups of layers 0 .. k are done (level 0: from the start).
        let mut level: HashMap<Value, usize> = HashMap::new();
        let mut lookup_layer: HashMap<Wire, usize> = HashMap::new();
        for (i, op) in circuit.ops().iter().enumerate() {
            let wire = Wire(i as u32);
            let ready = |level: &HashMap<Value, usize>, v: &Value| level.get(v).copied().unwrap_or(0);
            match op {
                Op::Input { .. } => {}
                Op::Linear { .. } => {
                    for m in &values.of[i] {
                        let sum = &values.sums[&(wire, *m)];
                        let at = sum.0.iter().map(|(v, _)| ready(&level, v)).max().unwrap_or(0);
                        level.insert((wire, *m), at);
                    }
                }
                Op::Lookup { .. } => {
                    if let Some(starts) = values.starts.get(&wire) {
                        let at = starts.iter().map(|v| ready(&level, v)).max().unwrap_or(0);
                        lookup_layer.insert(wire, at);
                        level.extend(values.of[i].iter().map(|m| ((wire, *m), at + 1)));
                    }
                }
            }
        }
        let last = lookup_layer.values().map(|k| k + 1).max().unwrap_or(0);

        // The latest layer whose sums may make a value: that of its first use.
        let mut due: HashMap<Value, usize> = HashMap::new();
        let use_at = |due: &mut HashMap<Value, usize>, v: &Value, at: usize| {
            due.entry(*v).and_modify(|d| *d = at.min(*d)).or_insert(at);
        };
        values.outputs.iter().flatten().flatten().for_each(|v| use_at(&mut due, v, last));
        let mut sums = vec![Vec::new(); last + 1];
        let mut lookups = vec![Vec::new(); last + 1];
        for (i, op) in circuit.ops().iter().enumerate().rev() {
            let wire = Wire(i as u32);
            match op {
                Op::Input { .. } => {}
                Op::Linear { .. } => {
                    for m in &values.of[i] {
                        let at = due[&(wire, *m)];
                        sums[at].push((wire, *m));
                        values.sums[&(wire, *m)].0.iter().for_each(|(v, _)| use_at(&mut due, v, at));
                    }
                }
                Op::Lookup { .. } => {
                    if let Some(starts) = values.starts.get(&wire) {
                        let at = lookup_layer[&wire];
                        lookups[at].push(wire);
                        starts.iter().for_each(|v| use_at(&mut due, v, at));
                    }
                }
            }
        }
        sums.iter_mut().for_each(|layer| layer.reverse());
        lookups.iter_mut().for_each(|layer| layer.reverse());
        Schedule { sums, lookups }
    }
}

/// Slots by value, reused after the last use.
#[derive(Default)]
struct Allocation {
    slots: HashMap<Value, Slot>,
    uses_left: HashMap<Value, usize>,
    free_lanes: Vec<u32>,
    free_uniform: Vec<u32>,
    lane_slots: u32,
    uniform_slots: u32,
}

impl Allocation {
    fn run(circuit: &Circuit, values: &Values, schedule: &Schedule) -> Compiled {
        let mut allocation = Allocation::default();
        let sources = values.sums.values().flat_map(|(terms, _)| terms.iter().map(|(v, _)| v));
        let uses =
            sources.chain(values.starts.values().flatten()).chain(values.outputs.iter().flatten().flatten());
        uses.for_each(|v| *allocation.uses_left.entry(*v).or_insert(0) += 1);

        let inputs = circuit.inputs().iter().map(|port| {
            let mut cell = |w: &Wire| -> Vec<(Matrix, Slot)> {
                let views = values.of[w.index()].iter();
                views.map(|m| (*m, allocation.take((*w, *m), port.uniform))).collect()
            };
            let cells = port.cells.iter().map(&mut cell).collect();
            CompiledPort { name: port.name.clone(), bits: port.bits, uniform: port.uniform, cells }
        });
        let inputs = inputs.collect();

        let mut layers = Vec::with_capacity(schedule.sums.len());
        for (sums, lookups) in schedule.sums.iter().zip(&schedule.lookups) {
            let linear = sums.iter().map(|value| {
                let (terms, constant) = &values.sums[value];
                let dst = allocation.take(*value, values.uniform[value.0.index()]);
                let terms_at = terms.iter().map(|(v, m)| (allocation.slots[v], *m)).collect();
                terms.iter().for_each(|(v, _)| allocation.used(v));
                Linear { dst, terms: terms_at, constant: *constant }
            });
            let linear = linear.collect();
            let looked_up = lookups.iter().map(|wire| {
                let Op::Lookup { table, .. } = &circuit.ops()[wire.index()] else {
                    unreachable!("a schedule holds lookups only here")
                };
                let xs = values.starts[wire].iter().map(|v| allocation.slots[v]).collect();
                let uniform = values.uniform[wire.index()];
                let views = values.of[wire.index()].iter();
                let views = views.map(|m| (*m, allocation.take((*wire, *m), uniform))).collect();
                Lookup { table: table.index(), xs, views }
            });
            let looked_up = looked_up.collect();
            lookups.iter().flat_map(|wire| &values.starts[wire]).for_each(|v| allocation.used(v));
            layers.push(Layer { linear, lookups: looked_up });
        }

        let outputs = circuit.outputs().iter().zip(&values.outputs).map(|(port, cells)| {
            let cell = |vs: &Vec<Value>| vs.iter().map(|v| (v.1, allocation.slots[v])).collect();
            let cells = cells.iter().map(cell).collect();
            CompiledPort { name: port.name.clone(), bits: port.bits, uniform: port.uniform, cells }
        });
        Compiled {
            name: circuit.name().into(),
            digest: circuit.digest(),
            tables: circuit.tables().to_vec(),
            inputs,
            outputs: outputs.collect(),
            layers,
            lane_slots: allocation.lane_slots as usize,
            uniform_slots: allocation.uniform_slots as usize,
        }
    }

    fn take(&mut self, value: Value, uniform: bool) -> Slot {
        let (free, count) = match uniform {
            true => (&mut self.free_uniform, &mut self.uniform_slots),
            false => (&mut self.free_lanes, &mut self.lane_slots),
        };
        let index = free.pop().unwrap_or_else(|| {
            *count += 1;
            *count - 1
        });
        let slot = if uniform { Slot::Uniform(index) } else { Slot::Lanes(index) };
        self.slots.insert(value, slot);
        slot
    }

    fn used(&mut self, value: &Value) {
        let left = self.uses_left.get_mut(value).expect("every use was counted");
        *left -= 1;
        if *left == 0 {
            match self.slots[value] {
                Slot::Lanes(index) => self.free_lanes.push(index),
                Slot::Uniform(index) => self.free_uniform.push(index),
            }
        }
    }
}

/// How many lookups there are of each number of views: what a protocol whose views are not free pays for.
pub fn views_histogram(compiled: &Compiled) -> BTreeMap<usize, usize> {
    let mut histogram = BTreeMap::new();
    compiled.lookups().for_each(|lookup| *histogram.entry(lookup.views.len()).or_insert(0) += 1);
    histogram
}
