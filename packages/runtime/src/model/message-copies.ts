import type { Message, MessageOptions } from '@skein/ai'

export function remembered<K extends object, V>(memory: WeakMap<K, V>, key: K, make: () => V): V {
  const known = memory.get(key)
  if (known) return known
  const made = make()
  memory.set(key, made)
  return made
}

export function sameAs({ id, timestamp, metadata }: Message): MessageOptions {
  return { id, timestamp, metadata }
}
