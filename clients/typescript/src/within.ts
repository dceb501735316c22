/** Work that must be done in time. */

import { GuardUnavailable } from "./error.js";

/** What `work` gives. If it takes longer it is told to stop, and whatever it still does is passed over.
 * @throws {GuardUnavailable} With reason `timeout`. */
export async function within<T>(
  timeoutMs: number,
  work: (signal: AbortSignal) => T | Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new GuardUnavailable("timeout", "no answer in time"));
      controller.abort();
    }, timeoutMs);
  });
  try {
    return await Promise.race([work(controller.signal), late]);
  } finally {
    clearTimeout(timer);
  }
}
