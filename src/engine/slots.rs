//! Places of operations. A place is a small number, and is used again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::protocol::room::Room;

/// Values at places. After there were many, their memory is given back.
#[derive(Debug)]
pub(super) struct Slots<T> {
    all: Vec<Option<T>>,
    /// The places without a value. Those beyond the end of `all` are out of date.
    free: BinaryHeap<Reverse<usize>>,
    used: usize,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { all: Vec::new(), free: BinaryHeap::new(), used: 0 }
    }
}

impl<T> Slots<T> {
    /// Gives a value a place: the first one that is free, so that the last places become free in the end.
    pub(super) fn add(&mut self, value: T) -> usize {
        self.used += 1;
        match self.free.pop().filter(|Reverse(place)| *place < self.all.len()) {
            Some(Reverse(place)) => {
                self.all[place] = Some(value);
                place
            }
            None => {
                // All of them are beyond the end.
                self.free.clear();
                self.all.push(Some(value));
                self.all.len() - 1
            }
        }
    }

    /// Drops the value at this place, which is free then.
    pub(super) fn remove(&mut self, place: usize) {
        match self.all.get_mut(place) {
            Some(value @ Some(_)) => *value = None,
            _ => return,
        }
        self.used -= 1;
        self.free.push(Reverse(place));
        while let Some(None) = self.all.last() {
            self.all.pop();
            self.all.give_back();
        }
        if self.used == 0 {
            self.free.clear();
            self.free.give_back_all();
        }
    }

    pub(super) fn get(&self, place: usize) -> Option<&T> {
        self.all.get(place)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.all.get_mut(place)?.as_mut()
    }

    /// The values with their places, in the order of the places.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(place, value)| Some((place, value.as_ref()?)))
    }

    /// How many values there are.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// A number that is greater than every place with a value.
    pub(super) fn end(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_free_place_is_reused() {
        let mut slots = Slots::default();
        assert_eq!(["a", "b", "c", "d"].map(|it| slots.add(it)), [0, 1, 2, 3]);
        [2, 2, 0].into_iter().for_each(|place| slots.remove(place));
        assert_eq!((slots.used(), slots.end()), (2, 4));
        assert_eq!((slots.get(0), slots.get(1), slots.get(9)), (None, Some(&"b"), None));
        assert_eq!(slots.iter().collect::<Vec<_>>(), [(1, &"b"), (3, &"d")]);
        assert_eq!(["e", "f", "g"].map(|it| slots.add(it)), [0, 2, 4]);
        *slots.get_mut(4).unwrap() = "h";
        assert_eq!(slots.get(4), Some(&"h"));
        [4, 9].into_iter().for_each(|place| slots.remove(place));
        assert_eq!(slots.get_mut(4), None);
    }

    #[test]
    fn free_places_at_the_end_are_dropped() {
        let mut slots = Slots::default();
        (0..6).for_each(|it| assert_eq!(slots.add(it), it));
        [5, 3, 4].into_iter().for_each(|it| slots.remove(it));
        assert_eq!(slots.end(), 3);
        // One after the other, and none twice.
        assert_eq!([(), (), (), ()].map(|()| slots.add(9)), [3, 4, 5, 6]);
        slots.remove(1);
        assert_eq!([slots.add(9), slots.add(9)], [1, 7]);
    }

    #[test]
    fn the_memory_of_many_places_is_given_back() {
        const MANY: usize = 10_000;
        let mut slots = Slots::default();
        let last = (0..MANY).map(|it| slots.add(it)).last().unwrap();
        // One that stays in the midst.
        (0..MANY).filter(|it| *it != 50).for_each(|it| slots.remove(it));
        assert!(last > 100 && slots.all.capacity() < 1_000, "{}", slots.all.capacity());
        slots.remove(50);
        assert!(slots.all.capacity() < 200 && slots.free.capacity() == 0);
    }
}
