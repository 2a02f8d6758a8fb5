import { ChevronDown } from 'lucide-react'
import { useEffect, useRef, useState, type ReactNode } from 'react'

/** A button that opens a list of actions; each action says what it does. */
export function Menu({
  label,
  children,
  className = 'btn',
}: {
  readonly label: ReactNode
  readonly children: (close: () => void) => ReactNode
  readonly className?: string
}): ReactNode {
  const [isOpen, setOpen] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
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
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        {label} <ChevronDown size={14} aria-hidden />
      </button>
      {isOpen && <div className="menu-list">{children(close)}</div>}
    </div>
  )
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
