import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { layers } from '../check/layers.ts'
import { findPackages, root } from '../workspace.ts'
import { packagesSvg, readPicture } from './packages-svg.ts'

const text = readFileSync(join(root, 'scripts/architecture-picture/packages.txt'), 'utf8')
const picture = readPicture(text)

test('docs/architecture.svg is what the text says', () => {
  // If this fails: node scripts/architecture-picture.ts
  expect(readFileSync(join(root, 'docs/architecture.svg'), 'utf8')).toBe(packagesSvg(picture))
})

test('the picture has every package, and every arrow leads to a layer below', () => {
  const drawn = picture.boxes.map(({ name }) => name)
  expect(drawn.toSorted()).toEqual(
    findPackages()
      .map(({ folder }) => basename(folder))
      .toSorted(),
  )
  const layerOf = (name: string): number =>
    layers['packages']!.findIndex((layer) => layer.split(' ').includes(name))
  const upward = picture.arrows.filter(({ from, to }) => layerOf(to) >= layerOf(from))
  expect(upward).toEqual([])
})

test('a line that is nothing of the picture is refused', () => {
  expect(() => readPicture('row base  is shared\nbase 0-3 text\nwhat is this')).toThrow('neither')
  expect(() => readPicture('base 0-3 text')).toThrow('in no row')
})
