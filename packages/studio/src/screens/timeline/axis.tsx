import { useState, type PointerEvent, type ReactNode } from 'react'
import { clockText, duration } from '../../parts/format.ts'
import type { TimelineClock } from './clock.ts'
import type { Range } from './timeline-view.tsx'

/** The time scale above the bars. Dragging over a range of it zooms to that range. */
export function Axis({
  clock,
  range: [from, to],
  onRange,
  count,
}: {
  readonly clock: TimelineClock
  readonly range: Range
  readonly onRange: (range: Range) => void
  /** How many rows there are, in words. */
  readonly count: string
}): ReactNode {
  const [brush, setBrush] = useState<Range>()
  const origin = clock.pieces[0]!.from
  const at = (event: PointerEvent<HTMLElement>): number => {
    const box = event.currentTarget.getBoundingClientRect()
    const part = (event.clientX - box.left) / box.width
    return Math.min(1, Math.max(0, part))
  }
  const percent = (place: number): number => ((place - from) / (to - from)) * 100
  return (
    <div className="axis">
      <span className="soft small num">
        <span>{count}</span> from {clockText(clock.timeAt(from))}
      </span>
      <span
        className="axis-track"
        aria-hidden
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId)
          setBrush([at(event), at(event)])
        }}
        onPointerMove={(event) => brush && setBrush([brush[0], at(event)])}
        onPointerUp={() => {
          if (brush && Math.abs(brush[1] - brush[0]) > 0.01) {
            const [left, right] = [Math.min(...brush), Math.max(...brush)]
            onRange([from + left * (to - from), from + right * (to - from)])
          }
          setBrush(undefined)
        }}
      >
        {ticks(clock, from, to).map(({ place, time }) => (
          <span
            key={place}
            className={percent(place) > 65 ? 'tick num last' : 'tick num'}
            style={{ left: `${percent(place)}%` }}
          >
            {duration(time - origin)}
          </span>
        ))}
        {clock.pieces
          .filter(({ isIdle, start, width }) => isIdle && start < to && start + width > from)
          .map(({ start, width, from: since, to: till }) => (
            <span
              key={start}
              className="idle-mark num"
              title={`Nothing ran for ${duration(till - since)}`}
              style={{
                left: `${percent(start)}%`,
                width: `${(width / (to - from)) * 100}%`,
              }}
            >
              <b>{idleText(till - since)}</b>
            </span>
          ))}
        {brush && (
          <i
            className="brush"
            style={{
              left: `${Math.min(...brush) * 100}%`,
              width: `${Math.abs(brush[1] - brush[0]) * 100}%`,
            }}
          />
        )}
      </span>
    </div>
  )
}

/** The length of an idle period in few characters: `2 h`, `40 s`. */
function idleText(ms: number): string {
  return duration(ms).replace(/(min|h) .*/, '$1')
}

/** Returns round times within the visible range, except inside a shortened idle period. */
function ticks(clock: TimelineClock, from: number, to: number): { place: number; time: number }[] {
  const origin = clock.pieces[0]!.from
  const wanted = (to - from) / 6
  const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1)))
  const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= wanted) ?? power
  const found: { place: number; time: number }[] = []
  for (const piece of clock.pieces) {
    if (piece.isIdle || piece.start > to || piece.start + piece.width < from) continue
    const first = Math.ceil((piece.from - origin) / step) * step + origin
    for (let time = first; time < piece.to && found.length < 200; time += step) {
      const place = clock.at(time)
      const isFree = place - (found.at(-1)?.place ?? -Infinity) > wanted * 0.6
      if (place >= from && place < to - wanted * 0.3 && isFree) found.push({ place, time })
    }
  }
  return found
}
