--- minmax: the range method that covers every value seen in calibration. Nothing that was seen is clipped.
return {
  text = "every value seen in calibration",
  choose = function(site)
    return site.low, site.high
  end,
}
