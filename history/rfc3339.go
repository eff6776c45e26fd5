package history

// parseRFC3339 reads a time such as 2017-10-05T14:48:00.123+02:00 and returns
// its unix seconds. T and Z may be small, and T may be a space, as RFC 3339
// allows; the leap second may not be, as unix time has none.
func parseRFC3339(text string) (int64, bool) {
	const bare = len("2006-01-02T15:04:05")
	if len(text) <= bare || text[13] != ':' || text[16] != ':' {
		return 0, false
	}
	if b := text[10]; b != 'T' && b != 't' && b != ' ' {
		return 0, false
	}
	days, ok := parseDate(text[:10])
	hour, minute, second := twoDigits(text[11:]), twoDigits(text[14:]), twoDigits(text[17:])
	if !ok || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	text = text[bare:]
	if text[0] == '.' {
		n := digitsIn(text[1:])
		if n == 0 {
			return 0, false
		}
		text = text[1+n:]
	}
	offset, ok := parseOffset(text)
	if !ok {
		return 0, false
	}
	return days*daySeconds + int64(hour)*3600 + int64(minute)*60 + int64(second) - offset, true
}

// parseOffset reads Z or ±hh:mm as seconds east of UTC.
func parseOffset(text string) (int64, bool) {
	if text == "Z" || text == "z" {
		return 0, true
	}
	if len(text) != len("+00:00") || (text[0] != '+' && text[0] != '-') || text[3] != ':' {
		return 0, false
	}
	hours, minutes := twoDigits(text[1:]), twoDigits(text[4:])
	if hours > 23 || minutes > 59 {
		return 0, false
	}
	offset := int64(hours)*3600 + int64(minutes)*60
	if text[0] == '-' {
		offset = -offset
	}
	return offset, true
}

// parseDate reads a date such as 2017-10-05 and returns its days since
// 1970-01-01.
func parseDate(text string) (int64, bool) {
	high, low, month, day := twoDigits(text), twoDigits(text[2:]), twoDigits(text[5:]), twoDigits(text[8:])
	if high > 99 || low > 99 || month < 1 || month > 12 || text[4] != '-' || text[7] != '-' {
		return 0, false
	}
	year := high*100 + low
	if day < 1 || day > daysIn(year, month) {
		return 0, false
	}
	return daysSince1970(int64(year), int64(month), int64(day)), true
}

// twoDigits returns the number that text begins with, more than 99 if those are
// not two digits.
func twoDigits(text string) int {
	tens, ones := text[0]-'0', text[1]-'0'
	if tens > 9 || ones > 9 {
		return 100
	}
	return int(tens)*10 + int(ones)
}

func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	default:
		return 31
	}
}

// daysSince1970 counts days of the Gregorian calendar, with years that begin in
// March so that the leap day is the last (Howard Hinnant: chrono-compatible
// low-level date algorithms, 2013). The year is not negative.
func daysSince1970(year, month, day int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	year += 400 // keeps the year 0 from becoming negative
	era := year / 400
	ofEra := year % 400
	ofYear := (153*(month-3)+2)/5 + day - 1
	return (era-1)*146097 + ofEra*365 + ofEra/4 - ofEra/100 + ofYear - 719468
}
