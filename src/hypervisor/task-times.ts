/**
 * How far off a time may be that a driver gives for a task. A driver converts the times of its
 * hypervisor to Berth's clock, and vouches for this much: a clock that tells whole seconds, the
 * start of a task in whole seconds, and three seconds for the reply that told the clock.
 *
 * It is the only slack between the two clocks. Who looks for work of its own takes what began up to
 * this much earlier, so that it does not overlook its own task; what began before that is not its.
 */
export const taskTimeSlackMs = 5_000;
