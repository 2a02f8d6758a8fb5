import { useCallback, useEffect, useRef, useState, type ReactNode } from 'react'
import { ChevronLeft, ChevronRight, Pause, Play } from '../../icons/lucide.ts'
import { line } from '../../parts/format.ts'
import { useAddress, type ThreadAddress } from '../../state/address.ts'
import { useKeys } from '../../state/keys.ts'
import type { ShownThread } from '../../state/tree.ts'

/** The least time between two changes of the address: browsers refuse more than about twenty changes per second. */
const WRITE_MS = 80
/** About how many steps the playback of a long thread has. */
const PLAY_STEPS = 400
const SHORTEST_MS = 100
const LONGEST_MS = 700

/** A slider over the events of a thread; the page shows the thread as it was after the chosen event. */
export function Scrubber({
  live,
  at,
  address,
}: {
  /** The thread as it is now. */
  readonly live: ShownThread
  readonly at: number
  readonly address: ThreadAddress
}): ReactNode {
  const last = live.view.seq
  const [place, setPlace] = usePlace(at, address)
  const index = Math.max(
    0,
    live.events.findLastIndex(({ seq }) => seq <= place),
  )
  const current = live.events[index]
  const [isPlaying, setPlaying] = usePlayback(live.events, index, setPlace)
  const move = (step: number): void => {
    const next = live.events[Math.max(0, Math.min(live.events.length - 1, index + step))]
    if (next) setPlace(next.seq)
  }
  useKeys([
    { keys: '[', does: 'One event back', run: () => move(-1) },
    { keys: ']', does: 'One event forward', run: () => move(1) },
  ])
  const [, go] = useAddress()
  const [fromStart, isAtEnd] = [live.events[0]?.seq ?? 1, place >= last]
  return (
    <div className="scrubber" role="group" aria-label="Time travel">
      <button
        type="button"
        className="btn tiny"
        title="Shows what happened again, from the log. Nothing runs and nothing is sent."
        onClick={() => {
          if (!isPlaying && isAtEnd) setPlace(fromStart)
          setPlaying(!isPlaying)
        }}
      >
        {isPlaying ? <Pause size={13} aria-hidden /> : <Play size={13} aria-hidden />}
        {isPlaying ? 'Pause' : 'Play back'}
      </button>
      <button
        type="button"
        className="btn quiet icon tiny"
        aria-label="One event back"
        title="One event back ([)"
        onClick={() => move(-1)}
      >
        <ChevronLeft size={15} aria-hidden />
      </button>
      <input
        type="range"
        aria-label="Event"
        aria-valuetext={`Event ${place} of ${last}: ${current?.event.type ?? ''}`}
        min={fromStart}
        max={Math.max(last, at)}
        value={place}
        onChange={(event) => {
          setPlaying(false)
          setPlace(Number(event.target.value))
        }}
      />
      <button
        type="button"
        className="btn quiet icon tiny"
        aria-label="One event forward"
        title="One event forward (])"
        onClick={() => move(1)}
      >
        <ChevronRight size={15} aria-hidden />
      </button>
      <span className="small num scrubber-text">
        viewing event {place} of {last}
        {current && <span className="mono"> · {line(current.event.type, 40)}</span>}
      </span>
      <button
        type="button"
        className="btn tiny"
        onClick={() => go({ ...address, at: undefined }, true)}
      >
        Back to now <kbd>h</kbd>
      </button>
    </div>
  )
}

/** Plays the events back at about their original speed, with long pauses shortened. */
function usePlayback(
  events: ShownThread['events'],
  index: number,
  setPlace: (seq: number) => void,
): readonly [boolean, (isPlaying: boolean) => void] {
  const [isPlaying, setPlaying] = useState(false)
  const current = events[index]
  useEffect(() => {
    if (!isPlaying) return
    const step = Math.max(1, Math.ceil(events.length / PLAY_STEPS))
    const next = events[Math.min(events.length - 1, index + step)]
    if (!current || !next || next === current) {
      setPlaying(false)
      return
    }
    const gap = Date.parse(next.event.at) - Date.parse(current.event.at)
    const timer = setTimeout(
      () => setPlace(next.seq),
      Math.min(LONGEST_MS, Math.max(SHORTEST_MS, gap)),
    )
    return () => clearTimeout(timer)
  }, [isPlaying, index, events, current, setPlace])
  return [isPlaying, setPlaying]
}

/** Returns the position of the slider and a setter. The slider moves immediately, the address a little later. */
function usePlace(at: number, address: ThreadAddress): readonly [number, (seq: number) => void] {
  const [, go] = useAddress()
  const [place, setPlace] = useState(at)
  const latest = useRef({ address, go })
  latest.current = { address, go }
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const written = useRef(at)
  const wanted = useRef(at)
  useEffect(() => {
    // Something else changed the address, e.g. the back button.
    if (at !== written.current) setPlace(at)
    written.current = at
  }, [at])
  useEffect(
    () => () => {
      clearTimeout(timer.current)
      timer.current = undefined
    },
    [],
  )
  const set = useCallback((seq: number) => {
    setPlace(seq)
    wanted.current = seq
    // The timer limits how often the address changes while the slider is dragged.
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      written.current = wanted.current
      latest.current.go({ ...latest.current.address, at: wanted.current }, true)
    }, WRITE_MS)
  }, [])
  return [place, set]
}
