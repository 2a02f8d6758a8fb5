import type { Message, MessageOptions } from '@skein/ai'

export function remembered<K extends object, V>(memory: WeakMap<K, V>, key: K, make: () => V): V {
  const earlier = memory.get(key)
  if (earlier) return earlier
  const copy = make()
  memory.set(key, copy)
  return copy
}

export function sameAs({ id, timestamp, metadata }: Message): MessageOptions {
  return { id, timestamp, metadata }
}
