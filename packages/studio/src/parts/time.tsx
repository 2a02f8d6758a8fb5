import { type ReactNode, useSyncExternalStore } from 'react'
import { age, dateText } from './format.ts'

/** The clock of the page. Components that show an age ("3 min") are rendered again when it ticks. */
const clock = {
  now: Date.now(),
  listeners: new Set<() => void>(),
  timer: undefined as ReturnType<typeof setInterval> | undefined,
}

function subscribe(listener: () => void): () => void {
  clock.listeners.add(listener)
  clock.timer ??= setInterval(() => {
    clock.now = Date.now()
    for (const one of clock.listeners) one()
  }, 5000)
  return () => {
    clock.listeners.delete(listener)
    if (clock.listeners.size > 0) return
    clearInterval(clock.timer)
    clock.timer = undefined
  }
}

/** Returns the current time; it changes every five seconds. */
export function useNow(): number {
  useSyncExternalStore(subscribe, () => clock.now)
  return Math.max(clock.now, Date.now() - 5000)
}

/** Shows how long ago a time was, with the exact time on hover. */
export function Time({
  at,
  className = 'soft num',
  isAgo = false,
}: {
  readonly at: string
  readonly className?: string
  /** Whether to add `ago`, for use in a sentence: `3 min ago`. */
  readonly isAgo?: boolean
}): ReactNode {
  const now = useNow()
  const text = age(now - Date.parse(at))
  return (
    <time className={className} dateTime={at} title={dateText(at)}>
      {text}
      {isAgo && text !== 'now' && ' ago'}
    </time>
  )
}
