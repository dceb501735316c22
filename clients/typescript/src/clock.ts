/** The time in ms since the epoch. A test may move it. */
export type Clock = () => number;

/** The wall clock of this instance, which never steps back within the process. */
export const wallClock: Clock = () => {
  latestMs = Math.max(latestMs, Date.now());
  return latestMs;
};

let latestMs = 0;
