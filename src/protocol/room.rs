//! Memory for many, given back when there are few.

use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::Hash;

/// Less memory is not worth giving back. A program with 64 calls in flight, which is many, never gives any back: it
/// would need the memory again at once.
const ROOM_MIN: usize = 128;

/// A collection that keeps its memory when its elements are removed.
pub(crate) trait Room {
    /// How many elements there are, and for how many there is room.
    fn used_and_room(&self) -> (usize, usize);

    /// Gives back the room for more than this number of elements.
    fn shrink(&mut self, room: usize);

    /// If there is room for many more elements than there are, gives half of it back. Called whenever an element
    /// was removed, this costs little per element.
    fn give_back(&mut self) {
        let (used, room) = self.used_and_room();
        if room > ROOM_MIN.max(4 * used) {
            self.shrink(room / 2);
        }
    }

    /// Gives back all room that is not needed, if it is worth it.
    fn give_back_all(&mut self) {
        if self.used_and_room().1 > ROOM_MIN {
            self.shrink(0);
        }
    }
}

impl<T> Room for Vec<T> {
    fn used_and_room(&self) -> (usize, usize) {
        (self.len(), self.capacity())
    }

    fn shrink(&mut self, room: usize) {
        self.shrink_to(room);
    }
}

impl<T> Room for VecDeque<T> {
    fn used_and_room(&self) -> (usize, usize) {
        (self.len(), self.capacity())
    }

    fn shrink(&mut self, room: usize) {
        self.shrink_to(room);
    }
}

impl<T: Ord> Room for BinaryHeap<T> {
    fn used_and_room(&self) -> (usize, usize) {
        (self.len(), self.capacity())
    }

    fn shrink(&mut self, room: usize) {
        self.shrink_to(room);
    }
}

impl<K: Eq + Hash, V> Room for HashMap<K, V> {
    fn used_and_room(&self) -> (usize, usize) {
        (self.len(), self.capacity())
    }

    fn shrink(&mut self, room: usize) {
        self.shrink_to(room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = 10_000;

    #[test]
    fn half_of_the_memory_is_freed_at_a_quarter_of_its_use() {
        let mut all = vec![0; MANY];
        all.truncate(MANY / 4);
        all.give_back();
        assert_eq!(all.capacity(), MANY);
        all.pop();
        all.give_back();
        assert_eq!((all.capacity(), all.len()), (MANY / 2, MANY / 4 - 1));
        let mut few = vec![0; ROOM_MIN];
        few.clear();
        few.give_back();
        assert_eq!(few.capacity(), ROOM_MIN);
    }

    #[test]
    fn empty_collections_give_memory_back() {
        let mut queue: VecDeque<_> = (0..MANY).collect();
        let mut heap: BinaryHeap<_> = (0..MANY).collect();
        let mut map: HashMap<_, _> = (0..MANY).map(|it| (it, it)).collect();
        for number in 0..MANY {
            queue.pop_front();
            heap.pop();
            map.remove(&number);
            queue.give_back();
            heap.give_back();
            map.give_back();
        }
        assert!(queue.capacity() <= ROOM_MIN && heap.capacity() <= ROOM_MIN);
        assert!(map.capacity() <= 2 * ROOM_MIN, "{}", map.capacity());
    }
}
