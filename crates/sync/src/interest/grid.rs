//! Spatial grid: a list of entities for each cell.

use rustc_hash::FxHashMap;

/// The key of a cell: an interest zone, and a cube of its space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CellKey {
    pub(super) zone: u32,
    pub(super) cube: Cube,
}

/// A cube of space, or the one place for all entities without a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Cube {
    Nowhere,
    At([i32; 3]),
}

/// An entity in a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) slot: u16,
    /// The origin for an entity without a position.
    pub(super) position: [f32; 3],
}

/// The entities of a cell, and those that moved within it, entered or left since the last [`Grid::settle`].
#[derive(Debug)]
pub(super) struct Cell {
    key: CellKey,
    pub(super) entries: Vec<Entry>,
    pub(super) changed: Vec<u16>,
    /// The last walk that visited it, so that no walk visits it twice.
    visited: u64,
}

/// The position of an entry: index of its cell, and index within that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) cell: usize,
    pub(super) at: usize,
}

#[derive(Debug)]
pub(super) struct Grid {
    /// Cubes per unit of length; `None` without cubes.
    per_unit: Option<f64>,
    cells: Vec<Cell>,
    by_key: FxHashMap<CellKey, usize>,
    free: Vec<usize>,
    /// Cells with entries in `changed`.
    touched: Vec<usize>,
    /// Whether an entity with a position is among the changed ones.
    has_moves: bool,
    /// Whether an entity was ever outside of the layer of cubes with z = 0.
    is_deep: bool,
    walks: u64,
}

impl Grid {
    /// Creates a grid with cubes of this size; `None` ignores positions.
    pub(super) fn new(cube_size: Option<f64>) -> Self {
        Grid {
            per_unit: cube_size.map(|size| 1.0 / size),
            cells: Vec::new(),
            by_key: FxHashMap::default(),
            free: Vec::new(),
            touched: Vec::new(),
            has_moves: false,
            is_deep: false,
            walks: 0,
        }
    }

    /// Returns the cell for `position` in `zone`.
    #[allow(clippy::cast_possible_truncation)] // a float saturates
    pub(super) fn key(&self, zone: u32, position: Option<[f32; 3]>) -> CellKey {
        let cube = match position.zip(self.per_unit) {
            Some((position, per_unit)) => {
                Cube::At(position.map(|x| (f64::from(x) * per_unit).floor() as i32))
            }
            None => Cube::Nowhere,
        };
        CellKey { zone, cube }
    }

    pub(super) fn key_of(&self, spot: Spot) -> CellKey {
        self.cells[spot.cell].key
    }

    pub(super) fn get(&self, key: CellKey) -> Option<usize> {
        self.by_key.get(&key).copied()
    }

    pub(super) fn cell(&self, index: usize) -> &Cell {
        &self.cells[index]
    }

    /// Whether an entity with a position changed since the last [`settle`](Self::settle).
    pub(super) fn has_moves(&self) -> bool {
        self.has_moves
    }

    pub(super) fn insert(&mut self, key: CellKey, entry: Entry) -> Spot {
        let cell = match self.get(key) {
            Some(cell) => cell,
            None => self.open(key),
        };
        self.cells[cell].entries.push(entry);
        self.touch(cell, entry.slot);
        Spot { cell, at: self.cells[cell].entries.len() - 1 }
    }

    /// Removes an entry. Returns the slot that was moved to its spot, if there is one.
    pub(super) fn remove(&mut self, spot: Spot) -> Option<u16> {
        let entry = self.cells[spot.cell].entries.swap_remove(spot.at);
        self.touch(spot.cell, entry.slot);
        self.cells[spot.cell].entries.get(spot.at).map(|moved| moved.slot)
    }

    /// Sets the position of an entry within its cell.
    pub(super) fn place(&mut self, spot: Spot, position: [f32; 3]) {
        let entry = &mut self.cells[spot.cell].entries[spot.at];
        entry.position = position;
        let slot = entry.slot;
        self.touch(spot.cell, slot);
    }

    /// Begins a walk that visits each cell once.
    pub(super) fn begin_walk(&mut self) {
        self.walks += 1;
    }

    /// Whether the walk visits this cell for the first time.
    pub(super) fn visit(&mut self, cell: usize) -> bool {
        std::mem::replace(&mut self.cells[cell].visited, self.walks) != self.walks
    }

    /// Appends the cells within one cube of `key`, in `key`'s zone and in zone 0.
    pub(super) fn neighbours(&self, key: CellKey, out: &mut Vec<usize>) {
        let Cube::At([x, y, z]) = key.cube else { return };
        let depth = i32::from(self.is_deep);
        for zone in [key.zone, 0].into_iter().take(if key.zone == 0 { 1 } else { 2 }) {
            for dx in -1..=1 {
                for dy in -1..=1 {
                    for dz in -depth..=depth {
                        let cube = [x.saturating_add(dx), y.saturating_add(dy), z.saturating_add(dz)];
                        out.extend(self.get(CellKey { zone, cube: Cube::At(cube) }));
                    }
                }
            }
        }
    }

    /// Clears the list of changes, and frees empty cells.
    pub(super) fn settle(&mut self) {
        self.has_moves = false;
        for index in self.touched.drain(..) {
            let cell = &mut self.cells[index];
            cell.changed.clear();
            if cell.entries.is_empty() && self.by_key.remove(&cell.key).is_some() {
                self.free.push(index);
            }
        }
    }

    /// The largest number of cells in use at one time.
    #[cfg(test)]
    pub(super) fn cells(&self) -> usize {
        self.cells.len()
    }

    fn open(&mut self, key: CellKey) -> usize {
        if let Cube::At([_, _, z]) = key.cube {
            self.is_deep |= z != 0;
        }
        let cell = if let Some(cell) = self.free.pop() {
            self.cells[cell].key = key;
            cell
        } else {
            self.cells.push(Cell { key, entries: Vec::new(), changed: Vec::new(), visited: 0 });
            self.cells.len() - 1
        };
        self.by_key.insert(key, cell);
        cell
    }

    fn touch(&mut self, cell: usize, slot: u16) {
        self.has_moves |= self.cells[cell].key.cube != Cube::Nowhere;
        let changed = &mut self.cells[cell].changed;
        if changed.is_empty() {
            self.touched.push(cell);
        }
        changed.push(slot);
    }
}
