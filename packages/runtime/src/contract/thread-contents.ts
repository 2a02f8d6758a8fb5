import type { JsonValue } from '@skein/base'
import type { EffectSchedule, FileStat, ScheduledEffect } from './thread-state.ts'

/** The files of a thread. */
export interface ThreadFiles {
  list(threadId: string, prefix?: string): Promise<readonly FileStat[]>
  stat(threadId: string, path: string): Promise<FileStat | undefined>
  read(
    threadId: string,
    path: string,
  ): Promise<{ readonly stat: FileStat; readonly bytes: Uint8Array }>
  write(
    threadId: string,
    path: string,
    bytes: Uint8Array,
    options?: { readonly mediaType?: string; readonly by?: string },
  ): Promise<FileStat>
  remove(threadId: string, path: string): Promise<boolean>
  move(threadId: string, from: string, to: string): Promise<FileStat>
}

/** The values of a thread. */
export interface ThreadValues {
  list(threadId: string, prefix?: string): Promise<Readonly<Record<string, JsonValue>>>
  get(threadId: string, key: string): Promise<JsonValue | undefined>
  set(threadId: string, key: string, value: JsonValue | null): Promise<void>
}

/** The variables of a thread. Secrets can be set but not read. */
export interface ThreadEnv {
  /** Returns names and types, and the values of text variables only. */
  list(
    threadId: string,
  ): Promise<
    readonly { readonly name: string; readonly type: 'text' | 'secret'; readonly value?: string }[]
  >
  set(
    threadId: string,
    name: string,
    value: string | null,
    options?: { readonly type?: 'text' | 'secret' },
  ): Promise<void>
}

/** The effects of a thread. */
export interface ThreadEffects {
  list(threadId: string): Promise<readonly ScheduledEffect[]>
  schedule(
    threadId: string,
    name: string,
    args: JsonValue,
    when: number | EffectSchedule,
  ): Promise<string>
  /** Runs an effect now instead of at its time. */
  runNow(threadId: string, effectId: string): Promise<void>
  remove(threadId: string, effectId: string): Promise<boolean>
}
