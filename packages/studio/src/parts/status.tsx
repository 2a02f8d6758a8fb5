import type { ThreadLifecycle } from '@skein/runtime'
import type { ThreadView } from '@skein/runtime/view'
import type { ReactNode } from 'react'
import { line, plural } from './format.ts'

/** The six shapes (icons) in which states are shown. */
export type StateShape = 'run' | 'wait' | 'done' | 'fail' | 'stop' | 'rest'

/**
 * The shape of each state of a thread. Its word is the word of the API and of the command: the same in the lists, the
 * palette, the tree and the chat, and in what a search understands.
 */
const SHAPES: Readonly<Record<ThreadLifecycle, StateShape>> = {
  idle: 'done',
  queued: 'run',
  running: 'run',
  waiting: 'wait',
  stopping: 'run',
  stopped: 'stop',
  failed: 'fail',
  terminated: 'stop',
  erased: 'rest',
}

/** The words of all states, for a search that names none of them. */
export const STATE_WORDS: readonly string[] = Object.keys(SHAPES)

/** What is shown of a thread's state. */
export interface ShownState {
  readonly lifecycle: ThreadLifecycle
  /** How the last session ended; shown where the state alone does not say it. */
  readonly outcome?: string
  /** How many decisions people have to make in the thread. */
  readonly waiting?: number
  /** What the agent says about its progress. */
  readonly text?: string
  readonly isNew?: boolean
}

/** Returns the shape and the words for the state of a thread. */
export function stateOf({
  lifecycle,
  outcome,
  waiting = 0,
  text,
  isNew = false,
}: ShownState): readonly [StateShape, string] {
  const isOver = lifecycle === 'terminated'
  const ended: StateShape | undefined =
    outcome === 'completed' ? 'done' : outcome === 'failed' ? 'fail' : undefined
  const shape =
    waiting > 0
      ? 'wait'
      : isOver && ended
        ? ended
        : lifecycle === 'idle' && isNew
          ? 'rest'
          : SHAPES[lifecycle]
  const saysWaiting = lifecycle === 'waiting' ? waiting < 2 : waiting === 0
  const words = [
    lifecycle,
    isOver ? outcome : undefined,
    text === undefined ? undefined : line(text, 60),
    saysWaiting ? undefined : plural(waiting, 'decision'),
  ]
  return [shape, words.filter((word) => word !== undefined).join(' · ')]
}

/** The state of a child in the words for threads, from what its parent's log says. */
export function stateOfChild(
  status: ThreadView['children'][number]['status'] | undefined,
): Pick<ShownState, 'lifecycle' | 'outcome'> {
  switch (status) {
    case 'awaiting_human':
      return { lifecycle: 'waiting' }
    // A child whose work has ended takes no more messages.
    case 'completed':
    case 'failed':
      return { lifecycle: 'terminated', outcome: status }
    case 'terminated':
    case 'idle':
      return { lifecycle: status }
    case 'running':
    case undefined:
      return { lifecycle: 'running' }
    default:
      return status satisfies never
  }
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
