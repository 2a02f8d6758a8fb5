import { ChevronDown } from '../icons/lucide.ts'
import { useEffect, useId, useLayoutEffect, useRef, useState, type ReactNode } from 'react'
import { useOverlay } from '../state/keys.ts'
import { OverlayContext } from './decision-button.tsx'

/** A button that opens a list of actions; each action says what it does. */
export function Menu({
  label,
  children,
  className = 'btn',
  isDisabled = false,
}: {
  readonly label: ReactNode
  readonly children: (close: () => void) => ReactNode
  readonly className?: string
  readonly isDisabled?: boolean
}): ReactNode {
  const [isOpen, setOpen] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const name = useId()
  useOverlay(name, isOpen)
  useLayoutEffect(() => {
    if (!isOpen) return
    list.current?.showPopover()
    const move = (): void => {
      if (list.current && button.current) place(list.current, button.current)
    }
    move()
    addEventListener('resize', move)
    document.addEventListener('scroll', move, true)
    return () => {
      removeEventListener('resize', move)
      document.removeEventListener('scroll', move, true)
    }
  }, [isOpen])
  useEffect(() => {
    if (!isOpen) return
    const outside = (event: Event): void => {
      if (!box.current?.contains(event.target as Node)) setOpen(false)
    }
    document.addEventListener('pointerdown', outside)
    return () => document.removeEventListener('pointerdown', outside)
  }, [isOpen])
  const close = (): void => {
    setOpen(false)
    button.current?.focus()
  }
  return (
    <div
      className="menu"
      ref={box}
      onKeyDown={(event) => {
        if (event.key === 'Escape' && isOpen) {
          event.stopPropagation()
          close()
        }
      }}
    >
      <button
        ref={button}
        type="button"
        className={className}
        disabled={isDisabled}
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        {label} <ChevronDown size={14} aria-hidden />
      </button>
      {isOpen && (
        <OverlayContext value={name}>
          <div className="menu-list" ref={list} popover="manual">
            {children(close)}
          </div>
        </OverlayContext>
      )}
    </div>
  )
}

const GAP_PX = 4
const EDGE_PX = 8

/**
 * Shows the list below or above its button, whole inside the window, whatever the containers around the button cut off.
 */
function place(list: HTMLElement, button: HTMLElement): void {
  const { innerWidth, innerHeight } = window
  const { top, bottom, right } = button.getBoundingClientRect()
  const below = innerHeight - bottom - GAP_PX - EDGE_PX
  const above = top - GAP_PX - EDGE_PX
  list.style.maxHeight = 'none'
  const { width, height } = list.getBoundingClientRect()
  const isBelow = height <= below || below >= above
  const room = isBelow ? below : above
  list.style.maxHeight = `${room}px`
  list.style.top = `${isBelow ? bottom + GAP_PX : top - GAP_PX - Math.min(height, room)}px`
  list.style.left = `${Math.max(EDGE_PX, Math.min(right, innerWidth - EDGE_PX) - width)}px`
}

/** One action of a menu: its name, and a line that says what it does and what it keeps. */
export function MenuItem({
  title,
  text,
  onClick,
}: {
  readonly title: string
  readonly text: string
  readonly onClick: () => void
}): ReactNode {
  return (
    <button type="button" className="menu-item" onClick={onClick}>
      <b>{title}</b>
      <span className="soft small">{text}</span>
    </button>
  )
}
