//go:build pictures

package e2e

import (
	"cmp"
	"image"
	"image/color"
	"math"
	"slices"
)

// fewColours returns a picture with 256 colours at most, as a page needs hardly more: a
// third of the bytes. It is median cut, without dithering, which would speckle flat areas.
func fewColours(img image.Image) image.Image {
	bounds := img.Bounds()
	counts := make(map[color.RGBA]int)
	at := func(x, y int) color.RGBA {
		r, g, b, _ := img.At(x, y).RGBA()
		return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 255}
	}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	all := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		all = append(all, c)
	}
	byRGB := func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	}
	slices.SortFunc(all, byRGB)

	// Cut the box that looks worst in one colour, until there are enough: its colours lie
	// far apart, or much of the picture has them.
	boxes := [][]color.RGBA{all}
	for len(boxes) < 256 {
		widest, worst, by := -1, 0.0, 0
		for i, box := range boxes {
			seen := 0
			for _, c := range box {
				seen += counts[c]
			}
			wide, channel := spreadOf(box)
			if bad := float64(wide*wide) * math.Sqrt(float64(seen)); bad > worst {
				widest, worst, by = i, bad, channel
			}
		}
		if widest < 0 {
			break
		}
		box := boxes[widest]
		slices.SortFunc(box, func(a, b color.RGBA) int {
			return cmp.Or(cmp.Compare(channelOf(a, by), channelOf(b, by)), byRGB(a, b))
		})
		least, most := channelOf(box[0], by), channelOf(box[len(box)-1], by)
		cut, _ := slices.BinarySearchFunc(box, (int(least)+int(most))/2+1, func(c color.RGBA, to int) int { return cmp.Compare(int(channelOf(c, by)), to) })
		boxes[widest] = box[:cut]
		boxes = append(boxes, box[cut:])
	}

	// Each box is shown in the colour that is seen most of it.
	var palette color.Palette
	index := make(map[color.RGBA]uint8, len(all))
	for i, box := range boxes {
		palette = append(palette, slices.MaxFunc(box, func(a, b color.RGBA) int { return cmp.Compare(counts[a], counts[b]) }))
		for _, c := range box {
			index[c] = uint8(i)
		}
	}
	out := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			out.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	return out
}

// spreadOf returns the widest channel of a box, and how wide it is.
func spreadOf(box []color.RGBA) (spread, channel int) {
	for by := range 3 {
		least, most := 255, 0
		for _, c := range box {
			least, most = min(least, int(channelOf(c, by))), max(most, int(channelOf(c, by)))
		}
		if most-least > spread {
			spread, channel = most-least, by
		}
	}
	return spread, channel
}

func channelOf(c color.RGBA, by int) uint8 { return [3]uint8{c.R, c.G, c.B}[by] }
