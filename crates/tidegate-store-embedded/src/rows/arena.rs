//! Memory for rows: slots of fixed sizes in pages that are given back once they are empty.

use super::slot::{NONE, SLOT_HEADER_BYTES, Slot, SlotMut};
use crate::memory::GivenBack;

/// Bytes of a slot in each size class; the last holds the largest value.
const CLASS_BYTES: [usize; 26] = [
    56, 64, 72, 80, 96, 112, 128, 144, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024, 1280, 1536,
    2048, 2560, 3072, 3584, 4160,
];
/// Large enough that the system takes an emptied page back by itself, small enough that a few lasting rows
/// don't hold on to much.
const PAGE_BYTES: usize = 256 * 1024;
/// A slot's id is its class, above this many bits of its place.
const PLACE_BITS: u32 = 27;

/// The slots of all classes.
#[derive(Debug)]
pub(crate) struct Arena {
    classes: [Class; CLASS_BYTES.len()],
}

/// Where a walk over all slots stands; see [`Arena::walk`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    class: usize,
    place: u32,
}

#[derive(Debug, Default)]
struct Class {
    pages: Vec<Option<Page>>,
    /// Pages that have room, and perhaps some that no longer do.
    roomy: Vec<u32>,
    /// Places in `pages` without a page.
    vacant: Vec<u32>,
    /// An empty page kept back, so that one row that comes and goes does not cost a page each time.
    idle: Option<u32>,
}

#[derive(Debug)]
struct Page {
    bytes: GivenBack,
    used: u32,
    /// Slots from here on were never used.
    fresh: u32,
    free: u32,
    /// Whether it stands in `roomy`.
    listed: bool,
}

impl Arena {
    pub(crate) fn new() -> Self {
        Self { classes: std::array::from_fn(|_| Class::default()) }
    }

    /// A slot for a value of this size, or nothing if the address space of its class is used up.
    pub(crate) fn allocate(&mut self, value_bytes: usize) -> Option<u32> {
        let class = class_of(value_bytes);
        let place = self.classes[class].allocate(CLASS_BYTES[class])?;
        Some(id(class, place))
    }

    /// Gives back a slot that holds no row any more.
    pub(crate) fn free(&mut self, slot: u32) {
        let (class, place) = class_and_place(slot);
        self.classes[class].free(place, CLASS_BYTES[class]);
    }

    /// Whether a value of this size should stay in this slot: it fits, and the slot is not far too large.
    pub(crate) fn suits(slot: u32, value_bytes: usize) -> bool {
        let (class, best) = (class_and_place(slot).0, class_of(value_bytes));
        class >= best && CLASS_BYTES[class] <= CLASS_BYTES[best] * 2
    }

    /// A slot that was allocated and not freed.
    pub(crate) fn slot(&self, slot: u32) -> Slot<'_> {
        let (class, place) = class_and_place(slot);
        Slot(
            self.classes[class]
                .slot(place, CLASS_BYTES[class])
                .expect("the slot is in use, so its page is there"),
        )
    }

    /// A slot that was allocated and not freed.
    pub(crate) fn slot_mut(&mut self, slot: u32) -> SlotMut<'_> {
        let (class, place) = class_and_place(slot);
        SlotMut(self.classes[class].slot_mut(place, CLASS_BYTES[class]))
    }

    /// The slot, unless it holds no row.
    pub(crate) fn row(&self, slot: u32) -> Option<Slot<'_>> {
        let (class, place) = class_and_place(slot);
        self.classes[class].slot(place, CLASS_BYTES[class]).map(Slot).filter(|slot| !slot.is_free())
    }

    /// Shows up to `slots_max` slots that hold rows, or are free, to `visit`, from `cursor` on, until it
    /// answers false. Answers where to go on, or nothing at the end. Rows that move meanwhile may be missed.
    pub(crate) fn walk(
        &self,
        mut cursor: Cursor,
        slots_max: &mut usize,
        mut visit: impl FnMut(u32, Slot<'_>) -> bool,
    ) -> Option<Cursor> {
        while let Some(class) = self.classes.get(cursor.class) {
            let slot_bytes = CLASS_BYTES[cursor.class];
            let slots = slots_a_page(slot_bytes);
            while let Some(page) = class.pages.get((cursor.place / slots) as usize) {
                let fresh = page.as_ref().map_or(0, |page| page.fresh);
                if cursor.place % slots >= fresh {
                    cursor.place = (cursor.place / slots + 1) * slots;
                    *slots_max = slots_max.saturating_sub(1);
                } else {
                    if *slots_max == 0 {
                        return Some(cursor);
                    }
                    *slots_max -= 1;
                    let slot =
                        class.slot(cursor.place, slot_bytes).map(Slot).expect("below the page's fresh ones");
                    if !slot.is_free() && !visit(id(cursor.class, cursor.place), slot) {
                        return Some(cursor);
                    }
                    cursor.place += 1;
                }
            }
            cursor = Cursor { class: cursor.class + 1, place: 0 };
        }
        None
    }

    /// Bytes of the pages that are held.
    pub(crate) fn page_bytes(&self) -> u64 {
        let pages = self.classes.iter().flat_map(|class| class.pages.iter().flatten());
        pages.map(|page| page.bytes.0.len() as u64).sum()
    }
}

impl Class {
    fn allocate(&mut self, slot_bytes: usize) -> Option<u32> {
        let slots = slots_a_page(slot_bytes);
        loop {
            let number = match self.roomy.last() {
                Some(&number) => number,
                None => self.add_page(slot_bytes)?,
            };
            let page = self.pages.get_mut(number as usize).and_then(Option::as_mut);
            match page.filter(|page| page.used < slots) {
                Some(page) => {
                    if page.used == 0 && self.idle == Some(number) {
                        self.idle = None;
                    }
                    page.used += 1;
                    return Some(number * slots + page.take(slot_bytes));
                }
                None => self.unlist_last(),
            }
        }
    }

    fn free(&mut self, place: u32, slot_bytes: usize) {
        let slots = slots_a_page(slot_bytes);
        let (number, index) = (place / slots, place % slots);
        let page = self.pages[number as usize].as_mut().expect("the slot is in use, so its page is there");
        page.give(index, slot_bytes);
        if !page.listed {
            page.listed = true;
            self.roomy.push(number);
        }
        if page.used == 0 {
            match self.idle {
                Some(idle) if idle != number => self.drop_page(number),
                _ => self.idle = Some(number),
            }
        }
    }

    fn slot(&self, place: u32, slot_bytes: usize) -> Option<&[u8]> {
        let slots = slots_a_page(slot_bytes);
        let page = self.pages.get((place / slots) as usize)?.as_ref()?;
        page.bytes.0.get(range(place % slots, slot_bytes))
    }

    fn slot_mut(&mut self, place: u32, slot_bytes: usize) -> &mut [u8] {
        let slots = slots_a_page(slot_bytes);
        let page =
            self.pages[(place / slots) as usize].as_mut().expect("the slot is in use, so its page is there");
        &mut page.bytes.0[range(place % slots, slot_bytes)]
    }

    fn add_page(&mut self, slot_bytes: usize) -> Option<u32> {
        let page = Page::new();
        let number = if let Some(number) = self.vacant.pop() {
            self.pages[number as usize] = Some(page);
            number
        } else {
            let number = u32::try_from(self.pages.len()).ok()?;
            number
                .checked_add(1)?
                .checked_mul(slots_a_page(slot_bytes))
                .filter(|&end| end <= 1 << PLACE_BITS)?;
            self.pages.push(Some(page));
            number
        };
        self.roomy.push(number);
        Some(number)
    }

    fn drop_page(&mut self, number: u32) {
        self.pages[number as usize] = None;
        self.vacant.push(number);
        // Its place in `roomy` is found empty, or taken by a new page that stands there twice, later.
        if self.roomy.last() == Some(&number) {
            self.roomy.pop();
        }
        if self.vacant.len() == self.pages.len() {
            *self = Self::default();
        } else if self.roomy.len() > self.pages.len() * 2 {
            self.relist(number);
        }
    }

    fn unlist_last(&mut self) {
        let number = self.roomy.pop();
        let page = number.and_then(|number| self.pages.get_mut(number as usize)).and_then(Option::as_mut);
        if let Some(page) = page {
            page.listed = false;
        }
    }

    /// Names every listed page once in `roomy`.
    fn relist(&mut self, _dropped: u32) {
        self.roomy.sort_unstable();
        self.roomy.dedup();
        let pages = &self.pages;
        self.roomy.retain(|&number| pages.get(number as usize).is_some_and(Option::is_some));
    }
}

impl Page {
    fn new() -> Self {
        Self { bytes: GivenBack(vec![0; PAGE_BYTES]), used: 0, fresh: 0, free: NONE, listed: true }
    }

    fn take(&mut self, slot_bytes: usize) -> u32 {
        if self.free == NONE {
            self.fresh += 1;
            return self.fresh - 1;
        }
        let index = self.free;
        self.free = Slot(&self.bytes.0[range(index, slot_bytes)]).next();
        index
    }

    fn give(&mut self, index: u32, slot_bytes: usize) {
        let mut slot = SlotMut(&mut self.bytes.0[range(index, slot_bytes)]);
        slot.free();
        slot.set_next(self.free);
        self.free = index;
        self.used -= 1;
    }
}

fn class_of(value_bytes: usize) -> usize {
    let bytes = SLOT_HEADER_BYTES + value_bytes;
    CLASS_BYTES.partition_point(|&class_bytes| class_bytes < bytes)
}

#[expect(clippy::cast_possible_truncation, reason = "pages are small and there are few classes")]
const fn slots_a_page(slot_bytes: usize) -> u32 {
    (PAGE_BYTES / slot_bytes) as u32
}

#[expect(clippy::cast_possible_truncation, reason = "there are few classes")]
const fn id(class: usize, place: u32) -> u32 {
    (class as u32) << PLACE_BITS | place
}

const fn class_and_place(slot: u32) -> (usize, u32) {
    ((slot >> PLACE_BITS) as usize, slot & ((1 << PLACE_BITS) - 1))
}

const fn range(index: u32, slot_bytes: usize) -> std::ops::Range<usize> {
    let start = index as usize * slot_bytes;
    start..start + slot_bytes
}
