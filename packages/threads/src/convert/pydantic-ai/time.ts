import { instantOf } from '../../timestamp.ts'

/** True for text that a thread can store as a time. */
export function isTime(value: unknown): value is string {
  return typeof value === 'string' && !Number.isNaN(instantOf(value))
}
