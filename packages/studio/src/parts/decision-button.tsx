import {
  createContext,
  useContext,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
  type ReactNode,
} from 'react'
import { isUnderPointer, watchDecision } from '../state/keys.ts'

/** The name of the dialog or menu around a component. */
export const OverlayContext: React.Context<string | undefined> = createContext<string | undefined>(
  undefined,
)

interface DecisionButtonProps {
  /** What identifies the call. When it changes, the button is a new one, which has to be in place first. */
  readonly call: string
  readonly className?: string
  readonly isDisabled?: boolean
  /** Whether it confirms a call that cannot be undone: then it also refuses presses if it appeared under the pointer. */
  readonly isConfirmation?: boolean
  /** A name by which the keys of a card find it. */
  readonly name?: string
  readonly onDecide: () => void
  readonly children: ReactNode
}

/**
 * A button that decides about a call. It has no click handler: `state/input.ts` says which presses and which keys
 * count. Until it has been in place for long enough, it is shown as disabled.
 */
export function DecisionButton({
  call,
  className = 'btn',
  isDisabled = false,
  isConfirmation = false,
  name,
  onDecide,
  children,
}: DecisionButtonProps): ReactNode {
  const overlay = useContext(OverlayContext)
  const own = useId()
  const id = `${own} ${call}`
  const element = useRef<HTMLButtonElement>(null)
  const latest = useRef(onDecide)
  latest.current = onDecide
  const [isReady, setReady] = useState(false)
  const [isRefused, setRefused] = useState(false)
  useLayoutEffect(() => {
    if (isDisabled || !element.current) return
    setReady(false)
    return watchDecision(id, {
      element: element.current,
      overlay,
      isConfirmation,
      decide: () => {
        setRefused(false)
        latest.current()
      },
      refuse: () => setRefused(true),
      onReady: setReady,
    })
  }, [id, isDisabled, overlay, isConfirmation])
  useEffect(() => {
    if (!isRefused) return
    const timer = setTimeout(() => setRefused(false), REFUSED_MS)
    return () => clearTimeout(timer)
  }, [isRefused])
  return (
    <>
      <button
        ref={element}
        type="button"
        className={`${className} decides`}
        disabled={isDisabled}
        aria-disabled={!isReady || undefined}
        data-choice={name}
      >
        {children}
      </button>
      <span role="status" className="too-soon small">
        {isRefused && 'Too quick: nothing was decided. Look at the call, then press again.'}
      </span>
    </>
  )
}

const REFUSED_MS = 4000

/**
 * Asks a second time before a call that cannot be undone. Its button is never the one that had the focus, and never
 * under the pointer.
 */
export function Confirmation({
  call,
  effect,
  verb,
  isBusy,
  onConfirm,
  onCancel,
}: {
  readonly call: string
  /** What the call does, in words. */
  readonly effect: string
  /** The text of the button. */
  readonly verb: string
  readonly isBusy: boolean
  readonly onConfirm: () => void
  readonly onCancel: () => void
}): ReactNode {
  const box = useRef<HTMLDivElement>(null)
  const text = useId()
  const [isFlipped, setFlipped] = useState(false)
  useLayoutEffect(() => {
    box.current?.scrollIntoView({ block: 'nearest' })
    box.current?.focus({ preventScroll: true })
    const button = box.current?.querySelector('.decides')
    if (button && isUnderPointer(button)) setFlipped(true)
  }, [])
  return (
    <div
      ref={box}
      className={isFlipped ? 'confirm flipped' : 'confirm'}
      role="group"
      aria-labelledby={text}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return
        event.stopPropagation()
        event.preventDefault()
        onCancel()
      }}
    >
      <p id={text}>
        {effect} <b className="bad">This cannot be undone.</b>
      </p>
      <div className="btns">
        <button type="button" className="btn" onClick={onCancel}>
          Back
        </button>
        <DecisionButton
          call={call}
          name="confirm"
          className="btn danger"
          isDisabled={isBusy}
          isConfirmation
          onDecide={onConfirm}
        >
          {verb}
        </DecisionButton>
      </div>
    </div>
  )
}
