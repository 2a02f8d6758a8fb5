import type { ThreadLifecycle } from '@skein/runtime'
import type { ReactNode } from 'react'

/** The six shapes (icons) in which states are shown. */
export type StateShape = 'run' | 'wait' | 'done' | 'fail' | 'stop' | 'rest'

const STATES: Readonly<Record<string, readonly [StateShape, string]>> = {
  idle: ['done', 'done'],
  queued: ['run', 'starts'],
  running: ['run', 'works'],
  waiting: ['wait', 'waits'],
  awaiting_human: ['wait', 'waits for a person'],
  completed: ['done', 'done'],
  stopped: ['stop', 'stopped'],
  failed: ['fail', 'failed'],
  terminated: ['stop', 'ended'],
  erased: ['rest', 'erased'],
}

/** Returns the shape and the word for the state of a thread. */
export function stateOf(
  lifecycle: ThreadLifecycle | (string & {}),
  { waiting = 0, isNew = false }: { readonly waiting?: number; readonly isNew?: boolean } = {},
): readonly [StateShape, string] {
  if (waiting > 0) return ['wait', 'waits for a person']
  if (lifecycle === 'idle' && isNew) return ['rest', 'new']
  return STATES[lifecycle] ?? ['rest', lifecycle]
}

/** A dot that shows a state by its shape as well as its colour. */
export function Dot({ shape }: { readonly shape: StateShape }): ReactNode {
  return <i className={`dot ${shape}`} aria-hidden />
}

/** A state as a shape and a word. */
export function Badge({
  shape,
  children,
}: {
  readonly shape: StateShape
  readonly children: ReactNode
}): ReactNode {
  return (
    <span className={`pill ${shape}`}>
      <Dot shape={shape} />
      {children}
    </span>
  )
}
