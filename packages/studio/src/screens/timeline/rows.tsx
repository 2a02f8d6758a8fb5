import { useVirtualizer } from '@tanstack/react-virtual'
import { useRef, useState, type KeyboardEvent, type ReactNode } from 'react'
import { Bot, GitBranch, User, Wrench } from '../../icons/lucide.ts'
import { duration, line } from '../../parts/format.ts'
import { timesOf, type TimelineRow, type BarKind } from './bars.ts'
import type { TimelineClock } from './clock.ts'
import { type Range } from './timeline-view.tsx'

const ICONS: Readonly<Record<BarKind, typeof Bot>> = {
  model: Bot,
  tool: Wrench,
  child: GitBranch,
  person: User,
}

const BARS = { wait: 'waited', queue: 'queued' } as const

/** The bars, one row each. Arrow keys move, Enter opens the details. */
export function Rows({
  rows,
  clock,
  range,
  current,
  onSelect,
  zoom,
}: {
  readonly rows: readonly TimelineRow[]
  readonly clock: TimelineClock
  readonly range: Range
  readonly current: number
  readonly onSelect: (id: string) => void
  readonly zoom: (row: TimelineRow | undefined) => void
}): ReactNode {
  const scroll = useRef<HTMLDivElement>(null)
  const [focused, setFocused] = useState(0)
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => 26,
    overscan: 6,
  })
  const focus = (index: number): void => {
    const next = Math.max(0, Math.min(rows.length - 1, index))
    setFocused(next)
    virtual.scrollToIndex(next)
    // The element of the row exists only after the list has scrolled to it.
    requestAnimationFrame(() =>
      scroll.current?.querySelector<HTMLElement>(`[data-row="${next}"]`)?.focus(),
    )
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      j: 1,
      k: -1,
      PageDown: 20,
      PageUp: -20,
      Home: -Infinity,
      End: Infinity,
    }
    const step = steps[event.key]
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    focus(focused + step)
  }
  const entry = Math.min(focused, rows.length - 1)
  return (
    <div
      className="bars"
      ref={scroll}
      role="region"
      aria-label="Timeline"
      tabIndex={rows.length === 0 ? 0 : -1}
      onKeyDown={onKeyDown}
    >
      {rows.length === 0 && <p className="soft pad">No rows match this filter.</p>}
      <ol className="event-rows" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, start }) => {
          const row = rows[index]!
          return (
            <li key={row.key} style={{ transform: `translateY(${start}px)` }}>
              <button
                type="button"
                data-row={index}
                className={`bar-row ${index === current ? 'selected' : ''}`}
                aria-pressed={index === current}
                tabIndex={index === entry ? 0 : -1}
                onFocus={() => setFocused(index)}
                onClick={() => onSelect(row.select)}
                onDoubleClick={() => zoom(row)}
              >
                <RowLabel row={row} />
                <RowBars row={row} clock={clock} range={range} />
              </button>
            </li>
          )
        })}
      </ol>
    </div>
  )
}

function RowLabel({ row }: { readonly row: TimelineRow }): ReactNode {
  const Icon = ICONS[row.kind]
  const times = timesOf(row)
  return (
    <span className="bar-label" style={{ paddingLeft: `${Math.min(row.depth, 8) * 14}px` }}>
      <Icon size={13} className={`${row.isFailed ? 'bad' : `${row.kind}-ink`}`} aria-hidden />
      <span className={`cut ${row.isFailed ? 'bad' : ''}`} title={row.outcome}>
        {line(row.name, 60)}
        {(row.isFailed || row.outcome?.includes(',')) && (
          <span className="hidden"> {row.outcome ?? 'failed'}</span>
        )}
      </span>
      <span className="soft num bar-took">
        {times.run > 0 || times.wait + times.queue === 0 ? duration(times.run) : ''}
        {times.wait > 0 && (
          <span className="waits">
            {times.run > 0 && ' + '}
            {duration(times.wait)}
            <span className="hidden"> waited</span>
          </span>
        )}
        {times.queue >= 1 && (
          <span className="faint bar-queued">
            {' '}
            {duration(times.queue)}
            <span className="hidden"> in a queue</span>
          </span>
        )}
      </span>
    </span>
  )
}

function RowBars({
  row,
  clock,
  range: [from, to],
}: {
  readonly row: TimelineRow
  readonly clock: TimelineClock
  readonly range: Range
}): ReactNode {
  const place = (time: number): number => ((clock.at(time) - from) / (to - from)) * 100
  return (
    <span className="bar-track" aria-hidden>
      {clock.pieces
        .filter(({ isIdle, start, width }) => isIdle && start < to && start + width > from)
        .map(({ start, width }) => (
          <i
            key={start}
            className="idle"
            style={{
              left: `${((start - from) / (to - from)) * 100}%`,
              width: `${(width / (to - from)) * 100}%`,
            }}
          />
        ))}
      {row.stretches.map((one) => {
        const [left, right] = [Math.max(0, place(one.from)), Math.min(100, place(one.to))]
        if (right < 0 || left > 100) return null
        return (
          <i
            key={`${one.kind} ${one.from}`}
            className={`bar ${one.kind === 'run' ? row.kind : BARS[one.kind]} ${row.isFailed && one.kind === 'run' ? 'failed' : ''}`}
            title={`${{ run: 'ran', queue: 'in a queue', wait: 'waited' }[one.kind]} ${duration(one.to - one.from)}`}
            style={{ left: `${left}%`, width: `max(3px, ${right - left}%)` }}
          />
        )
      })}
    </span>
  )
}
