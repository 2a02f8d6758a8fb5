import { type ReactNode, useId, useLayoutEffect, useRef } from 'react'
import { X } from '../icons/lucide.ts'
import { useOverlay } from '../state/keys.ts'
import { OverlayContext } from './decision-button.tsx'

/** A dialog over the page. Escape and a press outside it close it; the browser keeps the focus inside. */
export function Dialog({
  title,
  onClose,
  children,
  className,
  overlay,
}: {
  readonly title: string
  readonly onClose: () => void
  readonly children: ReactNode
  /** A class of its own, e.g. for the palette; such a dialog has no heading and no padding. */
  readonly className?: string
  /** The name under which it was announced as open before it was rendered; other dialogs announce themselves. */
  readonly overlay?: string
}): ReactNode {
  const ref = useRef<HTMLDialogElement>(null)
  const own = useId()
  const name = overlay ?? own
  // A press that begins inside, such as one that selects text, closes nothing where it ends.
  const isPressOutside = useRef(false)
  useOverlay(own, overlay === undefined)
  useLayoutEffect(() => {
    const dialog = ref.current
    const before = document.activeElement
    dialog?.showModal()
    return () => {
      dialog?.close()
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={ref}
      className={className}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onPointerDown={(event) => {
        isPressOutside.current = event.target === ref.current
      }}
      onClick={(event) => {
        if (event.target === ref.current && isPressOutside.current) onClose()
      }}
    >
      {className === undefined && (
        <div className="dialog-head">
          <h2>{title}</h2>
          <button type="button" className="btn quiet icon" aria-label="Close" onClick={onClose}>
            <X size={16} aria-hidden />
          </button>
        </div>
      )}
      <OverlayContext value={name}>
        {className === undefined ? <div className="dialog-body">{children}</div> : children}
      </OverlayContext>
    </dialog>
  )
}
