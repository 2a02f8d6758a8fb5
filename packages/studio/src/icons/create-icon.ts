import { createElement, type ReactElement } from 'react'

export interface IconProps {
  /** Width and height in pixels. */
  readonly size?: number
  readonly className?: string
  readonly 'aria-hidden'?: boolean
}

export type Icon = (props: IconProps) => ReactElement

/** An element of an icon's drawing, which is 24 units wide and high. */
type Shape = readonly [tag: 'circle' | 'path' | 'rect' | 'line' | 'polyline', attributes: object]

/** A component that draws the shapes as lines in the color of the text. Icons never carry meaning alone, so they are hidden. */
export function createIcon(shapes: readonly Shape[]): Icon {
  return ({ size = 24, ...props }) =>
    createElement(
      'svg',
      {
        width: size,
        height: size,
        viewBox: '0 0 24 24',
        fill: 'none',
        stroke: 'currentColor',
        strokeWidth: 2,
        strokeLinecap: 'round',
        strokeLinejoin: 'round',
        'aria-hidden': true,
        ...props,
      },
      ...shapes.map(([tag, attributes]) => createElement(tag, attributes)),
    )
}
