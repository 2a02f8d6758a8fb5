/**
 * Processor time of this thread in milliseconds. Tests that bound the cost of work without waits measure with it:
 * on a busy machine a thread waits for its turn, which is not the cost of the work.
 */
export function processorMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
