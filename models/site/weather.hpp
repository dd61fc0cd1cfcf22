/// What weather does to a site: how cold evaporating water gets, where the sun stands.
#pragma once

namespace lockstep {

/// Wet-bulb temperature of air at sea level, in degrees Celsius:
///
///     Tw = T atan(0.151977 sqrt(H + 8.313659)) + atan(T + H) - atan(H - 1.676331)
///          + 0.00391838 H^1.5 atan(0.023101 H) - 4.686035
///
/// Source: Stull 2011, J. Appl. Meteorol. Climatol. 50, 2267-2269, equation 1; fits from -20 to 50
/// degrees and 5 to 99 % within -1 to +0.65 degrees. Dry air below 5 % counts as 5 %.
/// `humidity`: relative, 0 to 1.
double wet_bulb_celsius(double dry_celsius, double humidity);

/// Sine of the sun's height, 0 at night; a clear sky's direct light on a panel that follows nothing
/// goes nearly with it:
///
///     sin h = sin(lat) sin(dec) + cos(lat) cos(dec) cos(15 deg (hour - 12))
///     dec = 23.45 deg sin(360 deg (284 + day) / 365)
///
/// Source: Cooper 1969, Solar Energy 12(3), 333-346 (declination); Duffie and Beckman, Solar
/// Engineering of Thermal Processes, equation 1.6.5. `day`: 1 on the first of January; `hour`:
/// solar time, 0 to 24.
double sun_height(double latitude_degrees, int day, double hour);

}  // namespace lockstep
