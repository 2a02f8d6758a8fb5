import { peersOf } from '../../scripts/peers.ts'

/** Imports one of the packages that `bench/peers` pins. */
export function peer<T>(name: string): Promise<T> {
  return peersOf('bench/peers').load<T>(name)
}
