//! Unit quaternions x, y, z, w. For display only: the results of trigonometry differ between machines.

/// x, y, z, w.
pub(super) type Quaternion = [f64; 4];

/// The rotation by `b`, then by `a`.
pub(super) fn multiply(a: Quaternion, b: Quaternion) -> Quaternion {
    let ([ax, ay, az, aw], [bx, by, bz, bw]) = (a, b);
    normalized([
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ])
}

/// The rotation from `from` to `to` by the shorter way.
pub(super) fn between(from: Quaternion, to: Quaternion) -> Quaternion {
    let [x, y, z, w] = from;
    multiply(to, [-x, -y, -z, w])
}

/// The angle of a rotation, in radians from 0 to π.
pub(super) fn angle(rotation: Quaternion) -> f64 {
    let [x, y, z, w] = rotation;
    2.0 * (x * x + y * y + z * z).sqrt().atan2(w.abs())
}

/// The fraction `t` of a rotation, by the shorter way.
pub(super) fn power(rotation: Quaternion, t: f64) -> Quaternion {
    from_vector(to_vector(rotation).map(|part| part * t))
}

/// Converts a rotation to a vector: its axis, with the angle in radians as its length, by the shorter way.
pub(super) fn to_vector(rotation: Quaternion) -> [f64; 3] {
    let [x, y, z, w] = rotation;
    let sine = (x * x + y * y + z * z).sqrt();
    if sine == 0.0 {
        return [0.0; 3];
    }
    let factor = angle(rotation) / sine * w.signum();
    [x * factor, y * factor, z * factor]
}

/// The rotation around the direction of `vector` by its length in radians.
pub(super) fn from_vector(vector: [f64; 3]) -> Quaternion {
    let [x, y, z] = vector;
    let angle = (x * x + y * y + z * z).sqrt();
    if angle == 0.0 {
        return IDENTITY;
    }
    let (sine, cosine) = (angle / 2.0).sin_cos();
    let factor = sine / angle;
    [x * factor, y * factor, z * factor, cosine]
}

const IDENTITY: Quaternion = [0.0, 0.0, 0.0, 1.0];

fn normalized(quaternion: Quaternion) -> Quaternion {
    let length = quaternion.iter().map(|part| part * part).sum::<f64>().sqrt();
    if length > 0.0 { quaternion.map(|part| part / length) } else { IDENTITY }
}
