//! The queue of passwords to hash. A hash takes tens of milliseconds and 19 MiB, so few run at once and the
//! others wait. One address cannot fill the queue: neighbourhoods are served in turn, and within them their
//! addresses. If all places are taken, the longest queue loses an entry.

use parlor_hub::Origin;
use parlor_server::embed::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

/// Maximum number of waiting jobs, of all addresses together.
pub(super) const WAITING_MAX: usize = 64;
/// Maximum number of waiting jobs of one address.
pub(super) const WAITING_OF_ADDRESS_MAX: usize = 16;

/// Waiting jobs, each with its address.
#[derive(Debug)]
struct JobQueue<T> {
    jobs: Vec<Job<T>>,
    /// For each address with a waiting job: when it was last served, or when its first waiting job arrived.
    origins: BTreeMap<u64, u64>,
    neighbourhoods: BTreeMap<u64, u64>,
    /// Counts arrivals and served jobs.
    count: u64,
}

#[derive(Debug)]
struct Job<T> {
    origin: Origin,
    number: u64,
    what: T,
}

impl<T> JobQueue<T> {
    fn new() -> Self {
        JobQueue { jobs: Vec::new(), origins: BTreeMap::new(), neighbourhoods: BTreeMap::new(), count: 0 }
    }

    /// Adds a job. Returns whether there was a place; a job of the longest queue may lose its place for it.
    fn put(&mut self, origin: Origin, what: T) -> bool {
        let own = self.jobs.iter().filter(|job| job.origin == origin).count();
        if origin != Origin::LOCAL && own >= WAITING_OF_ADDRESS_MAX {
            return false;
        }
        if self.jobs.len() >= WAITING_MAX && !self.make_room_for(origin) {
            return false;
        }
        self.count += 1;
        self.jobs.push(Job { origin, number: self.count, what });
        self.origins.entry(origin.0).or_insert(self.count);
        self.neighbourhoods.entry(origin.neighbourhood()).or_insert(self.count);
        true
    }

    /// Drops the newest job of the longest queue, unless that is the queue of `origin` itself.
    fn make_room_for(&mut self, origin: Origin) -> bool {
        let near = |origin: Origin| self.count_of(|other| other.neighbourhood() == origin.neighbourhood());
        let own = |origin: Origin| self.count_of(|other| other == origin);
        let longest = self.jobs.iter().max_by_key(|job| (near(job.origin), own(job.origin), job.number));
        let Some(longest) = longest else { return false };
        let (length, newcomer) = if longest.origin.neighbourhood() == origin.neighbourhood() {
            (own(longest.origin), own(origin))
        } else {
            (near(longest.origin), near(origin))
        };
        let number = longest.number;
        if length > newcomer + 1 {
            self.take(number);
            return true;
        }
        false
    }

    fn count_of(&self, is_of: impl Fn(Origin) -> bool) -> usize {
        self.jobs.iter().filter(|job| is_of(job.origin)).count()
    }

    /// Takes the next job: of the neighbourhood that was not served for the longest time, and in it of such
    /// an address.
    fn next(&mut self) -> Option<T> {
        let last = |served: &BTreeMap<u64, u64>, key| served.get(&key).copied();
        let next = self.jobs.iter().min_by_key(|job| {
            let Origin(origin) = job.origin;
            (last(&self.neighbourhoods, job.origin.neighbourhood()), last(&self.origins, origin), job.number)
        });
        let (origin, number) = next.map(|job| (job.origin, job.number))?;
        self.count += 1;
        self.origins.insert(origin.0, self.count);
        self.neighbourhoods.insert(origin.neighbourhood(), self.count);
        self.take(number)
    }

    fn take(&mut self, number: u64) -> Option<T> {
        let at = self.jobs.iter().position(|job| job.number == number)?;
        let Job { origin, what, .. } = self.jobs.swap_remove(at);
        if self.count_of(|other| other == origin) == 0 {
            self.origins.remove(&origin.0);
        }
        if self.count_of(|other| other.neighbourhood() == origin.neighbourhood()) == 0 {
            self.neighbourhoods.remove(&origin.neighbourhood());
        }
        Some(what)
    }
}

/// Threads that run jobs, and their queue. Each thread has its own memory that all its jobs use. The threads
/// end when this is dropped.
pub(super) struct Hashing<M>(Arc<HashingPool<M>>);

type Work<M> = Box<dyn FnOnce(&mut M) + Send>;

struct HashingPool<M> {
    queue: Mutex<Queue<M>>,
    changed: Condvar,
}

struct Queue<M> {
    waiting: JobQueue<Work<M>>,
    is_closed: bool,
}

impl<M: Default + 'static> Hashing<M> {
    /// Starts the threads.
    pub(super) fn start(threads: usize) -> std::io::Result<Self> {
        let queue = Mutex::new(Queue { waiting: JobQueue::new(), is_closed: false });
        let hashing = Hashing(Arc::new(HashingPool { queue, changed: Condvar::new() }));
        for _ in 0..threads {
            let shared = Arc::clone(&hashing.0);
            thread::Builder::new().name("parlor-hash".to_owned()).spawn(move || shared.work())?;
        }
        Ok(hashing)
    }

    /// Adds a job for an address. Returns whether there was a place. A job may still lose its place, and is
    /// then dropped.
    pub(super) fn put(&self, origin: Origin, work: Work<M>) -> bool {
        let is_in = lock(&self.0.queue).waiting.put(origin, work);
        self.0.changed.notify_one();
        is_in
    }
}

impl<M: Default> HashingPool<M> {
    fn work(&self) {
        let mut own = M::default();
        while let Some(work) = self.next() {
            work(&mut own);
        }
    }

    /// Waits for the next job. `None` at the end.
    fn next(&self) -> Option<Work<M>> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.is_closed {
                return None;
            }
            if let Some(work) = queue.waiting.next() {
                return Some(work);
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<M> Drop for Hashing<M> {
    fn drop(&mut self) {
        lock(&self.0.queue).is_closed = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Addresses of different neighbourhoods, or of one.
    fn far(number: u64) -> Origin {
        Origin((number + 1) << 16)
    }

    fn near(neighbourhood: u64, number: u64) -> Origin {
        Origin(((neighbourhood + 1) << 16) | number)
    }

    fn all<T>(waiting: &mut JobQueue<T>) -> Vec<T> {
        core::iter::from_fn(|| waiting.next()).collect()
    }

    #[test]
    fn threat_46_addresses_are_served_in_turn_however_many_jobs_one_has() {
        let mut waiting = JobQueue::new();
        let taken = (0..80).filter(|job| waiting.put(far(0), ("attacker", *job))).count();
        assert_eq!(taken, WAITING_OF_ADDRESS_MAX);
        for job in 0..4 {
            assert!(waiting.put(far(1), ("honest", job)));
        }
        let order: Vec<_> = all(&mut waiting).into_iter().take(8).map(|(who, _)| who).collect();
        assert_eq!(order, ["attacker", "honest"].repeat(4), "one after the other");
        assert!(waiting.origins.is_empty() && waiting.neighbourhoods.is_empty(), "nobody is remembered");
    }

    #[test]
    fn threat_46_the_longest_queue_gives_way_and_one_network_is_one_queue() {
        let mut waiting = JobQueue::new();
        // As many addresses as places, all of one network.
        let taken = (0..500).filter(|job| waiting.put(near(0, *job), 0)).count();
        assert_eq!(taken, WAITING_MAX, "each of them has one, and none gives way to another of the same");
        for job in 1..=20 {
            assert!(waiting.put(far(1), job) == (job <= 16), "job {job} of somebody else");
            assert_eq!(waiting.jobs.len(), WAITING_MAX);
        }
        let order = all(&mut waiting);
        let honest: Vec<_> = order.iter().copied().filter(|job| *job > 0).collect();
        assert_eq!(honest, (1..=16).collect::<Vec<_>>(), "in the order in which they came");
        let last = order.iter().rposition(|job| *job > 0).unwrap();
        assert!(last <= 2 * 16, "each was served after one of the others: {order:?}");
    }

    #[test]
    fn of_two_that_want_all_each_has_half() {
        let mut waiting = JobQueue::new();
        for address in 0..40 {
            for _ in 0..4 {
                waiting.put(near(0, address), 0);
            }
        }
        for address in 0..40 {
            for _ in 0..4 {
                waiting.put(near(1, address), 1);
            }
        }
        let order = all(&mut waiting);
        let of_second = order.iter().filter(|job| **job == 1).count();
        assert!(of_second.abs_diff(WAITING_MAX / 2) <= 1, "{of_second} of {}", order.len());
    }

    #[test]
    fn what_a_thread_has_is_used_by_all_of_its_jobs() {
        let hashing = Hashing::<Vec<u32>>::start(1).unwrap();
        let (done, results) = mpsc::sync_channel(10);
        for job in 0..10 {
            let done = done.clone();
            let work = move |own: &mut Vec<u32>| {
                own.push(job);
                done.send(own.len()).unwrap();
            };
            assert!(hashing.put(Origin::LOCAL, Box::new(work)));
        }
        assert_eq!(results.iter().take(10).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
        drop((hashing, done));
        assert!(results.recv().is_err(), "the thread has ended");
    }
}
