import { sha256Hex } from '@skein/base'
import type { Thread } from '../../document/thread.ts'

/**
 * A store for system prompts and instructions. They are configuration, so a thread contains only references
 * to them. The reference of a text is its SHA-256, so a prompt that a thousand runs share is stored once.
 */
export interface ConfigStore {
  /** Returns the text of a reference, or undefined. */
  get(ref: string): string | undefined
  /** Stores a text and returns its reference. */
  put(text: string): string
}

/**
 * A config store in memory. `entries()` returns plain data that can be saved and passed to
 * `createConfigStore` later.
 */
export interface MemoryConfigStore extends ConfigStore {
  entries(): { readonly [ref: string]: string }
}

/** Returns the reference under which a text is stored. */
export function configRef(text: string): string {
  return `sha256:${sha256Hex(text)}`
}

/** Creates a config store in memory, empty or with the entries of an earlier one. */
export function createConfigStore(
  entries: { readonly [ref: string]: string } = {},
): MemoryConfigStore {
  const texts = new Map(Object.entries(entries))
  const refs = new Map<string, string>()
  return {
    get: (ref) => texts.get(ref),
    put(text) {
      let ref = refs.get(text)
      if (ref === undefined) {
        ref = configRef(text)
        refs.set(text, ref)
        texts.set(ref, text)
      }
      return ref
    },
    entries: () => Object.fromEntries(texts),
  }
}

/** Returns the references that an export of this thread will look up, each once. */
export function configRefs(thread: Thread): readonly string[] {
  const refs = new Set<string>()
  for (const turn of thread.turns) {
    for (const message of turn.turn_type === 'user' ? [turn] : (turn.messages ?? [])) {
      if ('message_type' in message && message.message_type === 'system') continue
      if (message.instructions_ref !== undefined) refs.add(message.instructions_ref)
      for (const mark of message.system_prompts ?? []) {
        const ref = mark.prompt.content_ref ?? mark.part_ref
        if (ref !== undefined) refs.add(ref)
      }
    }
  }
  return [...refs]
}

/** Loads the prompts and instructions of a thread from an asynchronous store, such as a database. */
export async function loadConfigs(
  thread: Thread,
  load: (ref: string) => string | undefined | Promise<string | undefined>,
): Promise<MemoryConfigStore> {
  const entries: { [ref: string]: string } = {}
  for (const ref of configRefs(thread)) {
    const text = await load(ref)
    if (text !== undefined) entries[ref] = text
  }
  return createConfigStore(entries)
}
