import { Bot, GitBranch, Maximize, User, Wrench, ZoomIn } from 'lucide-react'
import { useVirtualizer } from '@tanstack/react-virtual'
import {
  useMemo,
  useRef,
  useState,
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
} from 'react'
import { Empty, useNow } from '../../parts/basics.tsx'
import { clockText, duration, line, plural } from '../../parts/format.ts'
import { useKeys } from '../../state/keys.ts'
import type { TreeState } from '../../state/tree.ts'
import { rowsOf, timesOf, type BarKind, type TimelineRow } from './bars.ts'
import { clockOf, type TimelineClock } from './clock.ts'

const FILTERS = [
  ['all', 'All'],
  ['failed', 'Failed'],
  ['slow', 'Slow'],
  ['waiting', 'Waited'],
] as const
type Filter = (typeof FILTERS)[number][0]

const ICONS: Readonly<Record<BarKind, typeof Bot>> = {
  model: Bot,
  tool: Wrench,
  child: GitBranch,
  person: User,
}

const BARS = { wait: 'waited', queue: 'queued' } as const

/** A part of the clock, in its units. */
type Range = readonly [from: number, to: number]

/** What ran when: models, tools, children and waits on one clock. Idle time is folded to a mark with its length. */
export function TimelineView({
  tree,
  until,
  selected,
  onSelect,
}: {
  readonly tree: TreeState
  /** The time up to which events are shown, when an earlier state is shown. */
  readonly until: number | undefined
  readonly selected: string | undefined
  readonly onSelect: (id: string) => void
}): ReactNode {
  const tick = useNow()
  const isLive = until === undefined && isOpen(tree)
  // The clock matters only while the thread works; at rest, its last event is the end.
  const now = until ?? (isLive ? tick : latest(tree))
  const all = useMemo(() => rowsOf(tree, now), [tree, now])
  const clock = useMemo(() => clockOf(all), [all])
  const [filter, setFilter] = useState<Filter>('all')
  const [agent, setAgent] = useState('')
  const agents = useMemo(() => [...new Set(all.map((row) => row.agent))], [all])
  const rows = useMemo(() => filtered(all, filter, agent), [all, filter, agent])
  const [range, setRange] = useState<Range>()
  const shown: Range = range ?? [0, clock.width]
  const current = rows.findIndex((row) => row.select === selected)
  const zoom = (row: TimelineRow | undefined): void => {
    if (!row) return
    const [from, to] = [clock.at(row.from), clock.at(row.to)]
    const margin = Math.max((to - from) * 0.15, clock.width / 5000)
    setRange([Math.max(0, from - margin), Math.min(clock.width, to + margin)])
  }
  useKeys([
    { keys: 'z', does: 'Zoom to the selected bar', run: () => zoom(rows[current]) },
    { keys: '0', does: 'Show the whole time', run: () => setRange(undefined) },
  ])
  const of = rows.length === all.length ? '' : `${rows.length} of `
  const count = `${of}${plural(all.length, 'row')}${tree.isWhole ? '' : ', reading more,'}`
  if (all.length === 0)
    return (
      <Empty title="Nothing has run yet">
        <p>Requests to models, calls and children appear here with the time they took.</p>
      </Empty>
    )
  return (
    <div className="timeline">
      <div className="timeline-tools">
        <div className="btns" role="group" aria-label="Filter">
          {FILTERS.map(([name, label]) => (
            <button
              key={name}
              type="button"
              className="btn tiny"
              aria-pressed={filter === name}
              onClick={() => setFilter(name)}
            >
              {label}
            </button>
          ))}
          {agents.length > 1 && (
            <select
              className="select tiny"
              aria-label="Agent"
              value={agent}
              onChange={(event) => setAgent(event.target.value)}
            >
              <option value="">All agents</option>
              {agents.map((name) => (
                <option key={name} value={name}>
                  {line(name, 40)}
                </option>
              ))}
            </select>
          )}
        </div>
        <Legend />
        <button
          type="button"
          className="btn tiny"
          disabled={current < 0}
          title="Zoom to the selected bar; dragging over the clock zooms too"
          onClick={() => zoom(rows[current])}
        >
          <ZoomIn size={13} aria-hidden /> Zoom <kbd>z</kbd>
        </button>
        <button
          type="button"
          className="btn tiny"
          disabled={range === undefined}
          onClick={() => setRange(undefined)}
        >
          <Maximize size={13} aria-hidden /> Whole <kbd>0</kbd>
        </button>
      </div>
      <Axis clock={clock} range={shown} onRange={setRange} count={count} />
      <Rows {...{ rows, clock, range: shown, current, onSelect, zoom }} />
    </div>
  )
}

function Legend(): ReactNode {
  return (
    <ul className="legend small soft" aria-label="What the bars mean">
      <li>
        <i className="bar model" aria-hidden /> model
      </li>
      <li>
        <i className="bar tool" aria-hidden /> tool
      </li>
      <li>
        <i className="bar child" aria-hidden /> child
      </li>
      <li>
        <i className="bar waited" aria-hidden /> waits
      </li>
      <li>
        <i className="bar queued" aria-hidden /> in a queue
      </li>
    </ul>
  )
}

/** The bars, one row each. Arrow keys move, Enter opens the details. */
function Rows({
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
    // The row exists after the list has scrolled.
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
      {rows.length === 0 && <p className="soft pad">No row fits this filter.</p>}
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
      <span className={`cut ${row.isFailed ? 'bad' : ''}`}>
        {line(row.name, 60)}
        {row.isFailed && <span className="hidden"> failed</span>}
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

/** The clock above the bars. Dragging over it zooms to what was marked. */
function Axis({
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
          <span key={place} className="tick num" style={{ left: `${percent(place)}%` }}>
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

/** The length of an idle stretch in few characters: `2 h`, `40 s`. */
function idleText(ms: number): string {
  return duration(ms).replace(/(min|h) .*/, '$1')
}

/** Returns round times within the visible range, but none inside a folded stretch. */
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

function filtered(
  rows: readonly TimelineRow[],
  filter: Filter,
  agent: string,
): readonly TimelineRow[] {
  const wanted = agent === '' ? rows : rows.filter((row) => row.agent === agent)
  switch (filter) {
    case 'all':
      return wanted
    case 'failed':
      return wanted.filter((row) => row.isFailed)
    case 'waiting':
      return wanted.filter((row) => row.stretches.some(({ kind }) => kind === 'wait'))
    case 'slow': {
      // The slowest tenth of what is shown.
      const times = wanted.map((row) => timesOf(row).run).toSorted((a, b) => a - b)
      const least = times[Math.floor(times.length * 0.9)] ?? 0
      return wanted.filter((row) => timesOf(row).run >= Math.max(least, 1))
    }
  }
}

function isOpen({ threads }: TreeState): boolean {
  for (const { view } of threads.values())
    if (/^(?:running|queued|waiting)$/.test(view.status)) return true
  return false
}

function latest({ threads }: TreeState): number {
  let time = 0
  for (const { view } of threads.values()) time = Math.max(time, Date.parse(view.updatedAt))
  return time
}
