import { peersOf } from '../../scripts/peers.ts'

/** Imports one of the packages that `peers/bench` pins. */
export function peer<T>(name: string): Promise<T> {
  return peersOf('bench').load<T>(name)
}
