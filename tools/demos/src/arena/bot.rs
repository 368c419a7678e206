//! A bot's driving.

use super::rules::{AIM_STEPS, Order, Tank, aim_of};
use parlor_impair::Rng;

/// Steps after which a bot may choose another way: five times a second.
const WAY_STEPS: u32 = 6;
/// How far off it aims at most, in parts of a turn: at usual distances as many shots pass as hit.
const OFF_MAX: f32 = 24.0;

/// A driver from a seed: it turns several times a second, and shoots at the nearest tank on its screen.
#[derive(Clone, Debug)]
pub struct Bot {
    rng: Rng,
    steps: u32,
    order: Order,
}

impl Bot {
    /// A bot.
    pub fn new(seed: u64) -> Self {
        Bot { rng: Rng::new(seed), steps: 0, order: Order::default() }
    }

    /// What it wants, given its own tank and where it sees the others.
    pub fn order(&mut self, me: Option<Tank>, others: &[[f32; 2]]) -> Order {
        if self.steps.is_multiple_of(WAY_STEPS) {
            let before = (self.order.east, self.order.south);
            while (self.order.east, self.order.south) == before {
                (self.order.east, self.order.south) = (self.way(), self.way());
            }
        }
        self.steps = self.steps.wrapping_add(1);
        let Some(me) = me else { return self.order };
        let away = |at: &[f32; 2]| [at[0] - me.position[0], at[1] - me.position[1]];
        let square = |[x, y]: [f32; 2]| x * x + y * y;
        let nearest = others.iter().map(away).min_by(|a, b| square(*a).total_cmp(&square(*b)));
        if let Some([east, south]) = nearest {
            let off = self.rng.between(-OFF_MAX, OFF_MAX);
            #[expect(clippy::cast_possible_truncation, reason = "a few parts of a turn")]
            let aim = i32::from(aim_of(south.atan2(east))) + off as i32;
            self.order.aim = u16::try_from(aim.rem_euclid(i32::from(AIM_STEPS))).unwrap_or(0);
        }
        self.order.fire = nearest.is_some();
        self.order
    }

    fn way(&mut self) -> i8 {
        #[expect(clippy::cast_possible_truncation, reason = "-1, 0 or 1")]
        let way = self.rng.between(-1.5, 1.5).round() as i8;
        way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_turns_four_times_a_second_and_more_and_aims_at_the_nearest() {
        let mut bot = Bot::new(1);
        let me = Tank::at([48.0, 10.0]);
        let orders: Vec<Order> =
            (0..300).map(|_| bot.order(Some(me), &[[60.0, 10.0], [48.0, 40.0]])).collect();
        let turns =
            orders.windows(2).filter(|two| (two[0].east, two[0].south) != (two[1].east, two[1].south));
        assert!(turns.count() >= 40, "in ten seconds");
        assert!(orders.iter().all(|order| order.fire && (order.aim <= 24 || order.aim >= AIM_STEPS - 24)));
        assert_eq!(orders, {
            let mut again = Bot::new(1);
            (0..300).map(|_| again.order(Some(me), &[[60.0, 10.0], [48.0, 40.0]])).collect::<Vec<_>>()
        });
    }
}
