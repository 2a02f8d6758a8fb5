import { useRef, useState, type KeyboardEvent, type PointerEvent, type ReactNode } from 'react'
import { readSetting, writeSetting } from '../state/store.ts'

/**
 * A pane of fixed width next to the rest of the page. The divider can be moved by mouse and keys; its place is stored.
 */
export function Split({
  name,
  className = '',
  label,
  side,
  initial,
  min = 200,
  max = 640,
  fixed,
  children,
}: {
  /** The name under which the width is stored; also a CSS class of the element. */
  readonly name: string
  readonly className?: string
  /** What the pane is, for the divider. */
  readonly label: string
  readonly side: 'start' | 'end'
  readonly initial: number
  readonly min?: number
  readonly max?: number
  readonly fixed: ReactNode
  readonly children: ReactNode
}): ReactNode {
  const [width, setWidth] = useState(() =>
    within(Number(readSetting(`width.${name}`)) || initial, min, max),
  )
  const drag = useRef<{ x: number; width: number } | undefined>(undefined)
  const [isDragging, setDragging] = useState(false)
  const sign = side === 'start' ? 1 : -1
  const change = (next: number): void => {
    const fitting = within(next, min, max)
    setWidth(fitting)
    writeSetting(`width.${name}`, String(fitting))
  }
  const onPointerDown = (event: PointerEvent<HTMLDivElement>): void => {
    event.currentTarget.setPointerCapture(event.pointerId)
    drag.current = { x: event.clientX, width }
    setDragging(true)
  }
  const onPointerMove = (event: PointerEvent): void => {
    if (drag.current) change(drag.current.width + sign * (event.clientX - drag.current.x))
  }
  const onPointerUp = (): void => {
    drag.current = undefined
    setDragging(false)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 16, ArrowLeft: -16 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    change(width + sign * step)
  }
  const pane = (
    <div key="fixed" className="pane" style={{ width }}>
      {fixed}
    </div>
  )
  return (
    <div className={`split ${name}-split ${className}`}>
      {side === 'start' && pane}
      {side === 'end' && (
        <div key="rest" className="pane rest">
          {children}
        </div>
      )}
      <div
        role="separator"
        aria-orientation="vertical"
        aria-label={`Width of ${label}`}
        aria-valuenow={width}
        aria-valuemin={min}
        aria-valuemax={max}
        tabIndex={0}
        className={isDragging ? 'divider dragging' : 'divider'}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerCancel={onPointerUp}
        onDoubleClick={() => change(initial)}
        onKeyDown={onKeyDown}
      />
      {side === 'end' && pane}
      {side === 'start' && (
        <div key="rest" className="pane rest">
          {children}
        </div>
      )}
    </div>
  )
}

function within(value: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, value))
}
